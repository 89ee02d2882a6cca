import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { z } from 'zod';

/** The pause that a server asked for in the calls that were made meanwhile; null if it asked for none. */
export interface AskedPause {
  ms: number | null;
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
const request = z.custom<object>(isObject);
const created = z.object({ request });
const bytes = z.instanceof(Uint8Array).transform((text) => String(Buffer.from(text)));
/** Names and values in turn over HTTP/1.1, an object over HTTP/2. */
const headers = z.union([z.array(bytes), z.record(z.string(), z.unknown())]);
const refused = z.object({ request, response: z.object({ statusCode: z.literal(429), headers }) });
const seconds = z.coerce.number().int().nonnegative();

const calls = new AsyncLocalStorage<AskedPause>();
const askers = new WeakMap<object, AskedPause>();

/**
 * Runs calls of the SDK and notes the pause that the server asks for when it refuses one. The SDK drops that header, so it is
 * read from what undici, through which the SDK calls, tells of each request.
 */
export function noteAskedPause<Result>(asked: AskedPause, call: () => Promise<Result>): Promise<Result> {
  return calls.run(asked, call);
}

subscribe('undici:request:create', (message) => {
  const asked = calls.getStore();
  const { data } = created.safeParse(message);
  if (asked !== undefined && data !== undefined) askers.set(data.request, asked);
});

subscribe('undici:request:headers', (message) => {
  const { data } = refused.safeParse(message);
  const asked = data && askers.get(data.request);
  if (data === undefined || asked === undefined) return;
  const pause = seconds.safeParse(headerOf(data.response.headers, 'retry-after')).data;
  asked.ms = pause === undefined ? null : pause * 1_000;
});

function headerOf(all: z.output<typeof headers>, wanted: string): unknown {
  if (!Array.isArray(all)) return all[wanted];
  const at = all.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === wanted);
  return at < 0 ? undefined : all[at + 1];
}
