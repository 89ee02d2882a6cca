import { existsSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { modelId as modelIdSchema, protobufType } from '../../../tinker-wire/index.ts';
import { errorMessage } from '../../errors.ts';
import type { ServerDirectories } from '../directories.ts';
import type { FutureKey, FutureResult, Futures } from './futures.ts';
import { notLoaded } from './results.ts';
import type { Samplers } from './samplers.ts';
import type { Sessions } from './sessions.ts';
import type { Training } from './training.ts';

/** The parts of the server that the Tinker routes use. */
export interface TinkerDependencies {
  /** Name of the base model. */
  readonly modelName: string;
  readonly contextLength: number;
  readonly training: Training;
  readonly samplers: Samplers;
  readonly futures: Futures;
  readonly directories: ServerDirectories;
  /** The tokens that end a sequence of a request without `stop`. */
  readonly endTokenIds: readonly number[];
  /** Returns the directory of the untrained weights. */
  baseWeights(): Promise<string>;
}

export interface TinkerState extends TinkerDependencies {
  readonly sessions: Sessions;
  /** Loaded models, with the session that created each and the number of requests that it has had. */
  readonly models: Map<string, { readonly session: string; requests: number }>;
  /** Directories of the checkpoints that are being written. */
  readonly saving: Set<string>;
}

/** An error that is answered at once with a status and `{"detail"}`, as FastAPI does. */
export class TinkerError extends Error {
  readonly status: ContentfulStatusCode;

  constructor(status: ContentfulStatusCode, detail: string) {
    super(detail);
    this.status = status;
  }
}

const maxBodyBytes = 256 * 1024 * 1024;

/** Submits work on a model. A model from before a restart gets a failed future, an unknown one a 404, as at SkyRL. */
export function submitForModel(c: Context, state: TinkerState, key: FutureKey, work: () => Promise<FutureResult>) {
  const model = state.models.get(key.scope);
  if (model === undefined && !wasCreated(state, key.scope)) throw new TinkerError(404, 'Model not found');
  const requestId =
    model === undefined
      ? submit(state, { ...key, sequence: null }, async () => notLoaded(key.scope))
      : submit(state, key, work);
  if (model !== undefined) model.requests += 1;
  return c.json({ future_id: requestId, request_id: requestId, status: 'pending' });
}

/** Whether this server has ever had the model, including before a restart. */
function wasCreated({ directories }: TinkerState, modelId: string): boolean {
  return modelIdSchema.safeParse(modelId).success && existsSync(directories.modelFile(modelId));
}

/** Returns the id of the request's future. */
export function submit(state: TinkerState, key: FutureKey, work: () => Promise<FutureResult>): string {
  const requestId = state.futures.submit(key, work);
  if (requestId === null) throw new TinkerError(409, 'Training request sequence number was reused, or is long past');
  return requestId;
}

export async function readBody<T>(c: Context, schema: z.ZodType<T>): Promise<T> {
  const json: unknown = await c.req.json().catch(() => null);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new TinkerError(
    422,
    parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '),
  );
}

export async function readProtobuf(c: Context): Promise<Buffer> {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (type !== protobufType) {
    throw new TinkerError(415, `forward_backward requires a ${protobufType} body (tinker SDK >= 0.25.0)`);
  }
  const bytes = Buffer.from(await c.req.arrayBuffer());
  if (c.req.header('content-encoding')?.toLowerCase() !== 'zstd') return bytes;
  return failWith(422, 'failed to zstd-decompress request body', () =>
    zstdDecompressSync(bytes, { maxOutputLength: maxBodyBytes }),
  );
}

/** Refuses a value other than the one that this server supports; a field that is not given is left to the server. */
export function refuseOthers<T>(field: string, supported: T, got: T | null | undefined): void {
  if (got === undefined || got === null || got === supported) return;
  throw new TinkerError(400, `${field}: expected ${supported}, which is all that this server supports, got ${got}`);
}

/** Runs work; any error becomes one with this status. */
export function failWith<T>(status: ContentfulStatusCode, what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new TinkerError(status, `${what}: ${errorMessage(error)}`);
  }
}
