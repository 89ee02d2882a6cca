import { errorMessage, PolicyError, type PolicyErrorCode } from '../../errors.ts';
import type { FutureResult } from './futures.ts';

/** Error codes that no request is to blame for. */
const serverFaults: readonly PolicyErrorCode[] = ['closed', 'worker-crashed'];

/** Returns the HTTP status of an error: 400 when the request is to blame, 500 when the server is. */
export function statusOf(error: unknown): 400 | 500 {
  return error instanceof PolicyError && !isServerFault(error) ? 400 : 500;
}

function isServerFault(error: unknown): boolean {
  return error instanceof PolicyError && serverFaults.includes(error.code);
}

/** Runs a future's work; an error becomes its result. */
export async function toResult(modelId: string, work: () => Promise<FutureResult>): Promise<FutureResult> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PolicyError && error.code === 'unknown-model') return notLoaded(modelId);
    // Clients retry a 5xx again and again, so only an error that a retry may fix gets one.
    return { status: isServerFault(error) ? 500 : 400, detail: errorMessage(error) };
  }
}

export function notLoaded(modelId: string): FutureResult {
  return { status: 400, detail: `Model ${modelId} not loaded (likely stale request from previous server)` };
}

export function jsonResult(body: unknown): FutureResult {
  return { status: 200, type: 'json', body };
}

/** Copies the bytes into memory of their own: a short buffer from Node's pool would keep all 64 KB of that while it is kept. */
export function bytesResult(bytes: Buffer): FutureResult {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return { status: 200, type: 'protobuf', bytes: own };
}
