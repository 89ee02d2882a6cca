import { zstdDecompressSync } from 'node:zlib';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { protobufType } from '../../../tinker-wire/index.ts';
import type { Places } from '../places.ts';
import type { FutureKey, Futures, Outcome } from './futures.ts';
import { messageOf, notLoaded } from './outcome.ts';
import type { ReceivedLog } from './received.ts';
import type { Samplers } from './samplers.ts';
import type { Training } from './training.ts';

/** What the Tinker routes share. */
export interface TinkerDependencies {
  /** Name of the base model. */
  readonly modelName: string;
  readonly contextLength: number;
  readonly training: Training;
  readonly samplers: Samplers;
  readonly futures: Futures;
  readonly received: ReceivedLog;
  readonly places: Places;
  /** Directory of the weights that nobody trained. */
  baseWeights(): Promise<string>;
}

export interface State extends TinkerDependencies {
  readonly sessions: Set<string>;
  /** Session → where its weights are; null: the base model. */
  readonly samplingSessions: Map<string, string | null>;
  /** Loaded models → requests they had. */
  readonly models: Map<string, { requests: number }>;
  /** Checkpoints that are being written. */
  readonly saving: Set<string>;
}

/** A request that is answered at once with a status and `{"detail"}`, as FastAPI does. */
export class Refusal extends Error {
  readonly status: ContentfulStatusCode;

  constructor(status: ContentfulStatusCode, detail: string) {
    super(detail);
    this.status = status;
  }
}

const maxBodyBytes = 256 * 1024 * 1024;

/** A model of an earlier life of this server gets a failed future, one that never was a 404: as SkyRL does. */
export function onModel(c: Context, state: State, key: FutureKey, work: () => Promise<Outcome>) {
  const model = state.models.get(key.scope);
  if (model === undefined && !state.received.knows(key.scope)) throw new Refusal(404, 'Model not found');
  const requestId = submitted(state, key, model === undefined ? async () => notLoaded(key.scope) : work);
  if (model !== undefined) model.requests += 1;
  return c.json({ future_id: requestId, request_id: requestId, status: 'pending' });
}

export function submitted(state: State, key: FutureKey, work: () => Promise<Outcome>): string {
  const requestId = state.futures.submit(key, work);
  if (requestId === null) throw new Refusal(409, 'Training request sequence number was reused');
  return requestId;
}

export async function bodyOf<T>(c: Context, schema: z.ZodType<T>): Promise<T> {
  const json: unknown = await c.req.json().catch(() => null);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new Refusal(422, parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '));
}

export async function protobufBody(c: Context): Promise<Buffer> {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (type !== protobufType) {
    throw new Refusal(415, `forward_backward requires a ${protobufType} body (tinker SDK >= 0.25.0)`);
  }
  const bytes = Buffer.from(await c.req.arrayBuffer());
  if (c.req.header('content-encoding')?.toLowerCase() !== 'zstd') return bytes;
  return refusing(422, 'failed to zstd-decompress request body', () =>
    zstdDecompressSync(bytes, { maxOutputLength: maxBodyBytes }),
  );
}

export function refusing<T>(status: ContentfulStatusCode, what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Refusal(status, `${what}: ${messageOf(error)}`);
  }
}
