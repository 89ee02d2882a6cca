import { PolicyError, type PolicyErrorCode } from '../../errors.ts';
import type { Outcome } from './futures.ts';

/** Codes that are nobody's request's fault. */
const ownFaults: readonly PolicyErrorCode[] = ['closed', 'worker-crashed'];

/** HTTP status of a refusal: 400 where the request is at fault, 500 where the server is. */
export function statusOf(error: unknown): 400 | 500 {
  return error instanceof PolicyError && !isOwnFault(error) ? 400 : 500;
}

function isOwnFault(error: unknown): boolean {
  return error instanceof PolicyError && ownFaults.includes(error.code);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Runs a future's work; a refusal becomes its result. */
export async function asOutcome(modelId: string, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PolicyError && error.code === 'unknown-model') return notLoaded(modelId);
    // Clients ask again and again after a 5xx: only what another try may cure is one.
    return { status: isOwnFault(error) ? 500 : 400, detail: messageOf(error) };
  }
}

export function notLoaded(modelId: string): Outcome {
  return { status: 400, detail: `Model ${modelId} not loaded (likely stale request from previous server)` };
}

export function jsonOutcome(body: unknown): Outcome {
  return { status: 200, type: 'json', body };
}

export function bytesOutcome(bytes: Buffer): Outcome {
  return { status: 200, type: 'protobuf', bytes };
}
