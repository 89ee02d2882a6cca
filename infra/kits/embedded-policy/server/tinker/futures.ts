import { createHash, randomUUID } from 'node:crypto';

/** The result of a request: the reply of retrieve_future, or an error with its status. */
export type FutureResult =
  | { readonly status: 200; readonly type: 'protobuf'; readonly bytes: Buffer }
  | { readonly status: 200; readonly type: 'json'; readonly body: unknown }
  | { readonly status: 400 | 500; readonly detail: string };

export interface FutureKey {
  /** The scope of the sequence: a model, or a sampling session. */
  readonly scope: string;
  readonly sequence: number | null | undefined;
  readonly kind: string;
  /** The request's content, as bytes or as a JSON value. */
  readonly payload: Uint8Array | unknown;
}

/** The number of large results that are kept. Older ones are dropped, but their requests are never done again. */
const keptResults = 256;

/**
 * Requests and their results. The same (scope, sequence) with the same payload is the same request: it is done once, even if
 * it fails. With another payload it is refused. Futures end with the process, as models do.
 */
export interface Futures {
  /**
   * Returns the id of the same earlier request; null if the sequence was used for another payload; undefined for a new
   * request.
   */
  earlier(key: FutureKey): string | null | undefined;
  /** Returns the request's id; null if the sequence was used for another payload. */
  submit(key: FutureKey, work: () => Promise<FutureResult>): string | null;
  /**
   * Returns null after `waitMs`, undefined for an unknown id, and 'dropped' if the request is done but its result no longer
   * kept.
   */
  wait(id: string, waitMs: number): Promise<FutureResult | null | undefined | 'dropped'>;
}

interface Entry {
  result: Promise<FutureResult> | 'dropped';
}

export function createFutures(): Futures {
  const entries = new Map<string, Entry>();
  const sequences = new Map<string, { readonly id: string; readonly digest: string }>();
  const settled: string[] = [];

  function retire(id: string, result: FutureResult): void {
    // Small results are kept, so that any retry finds them.
    if (result.status !== 200 || result.type === 'json') return;
    settled.push(id);
    const oldest = settled.length > keptResults ? settled.shift() : undefined;
    const entry = oldest === undefined ? undefined : entries.get(oldest);
    if (entry !== undefined) entry.result = 'dropped';
  }

  function earlier(key: FutureKey): string | null | undefined {
    const name = sequenceOf(key);
    const known = name === null ? undefined : sequences.get(name);
    if (known === undefined) return undefined;
    return known.digest === digestOf(key) ? known.id : null;
  }

  return {
    earlier,
    submit(key, work) {
      const known = earlier(key);
      if (known !== undefined) return known;
      const name = sequenceOf(key);
      const id = randomUUID();
      const result = work();
      entries.set(id, { result });
      if (name !== null) sequences.set(name, { id, digest: digestOf(key) });
      result.then((done) => retire(id, done)).catch(() => undefined);
      return id;
    },
    async wait(id, waitMs) {
      const entry = entries.get(id);
      if (entry === undefined || entry.result === 'dropped') return entry?.result;
      const { promise: late, resolve } = Promise.withResolvers<null>();
      const timer = setTimeout(() => resolve(null), waitMs);
      try {
        return await Promise.race([entry.result, late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function sequenceOf({ scope, sequence }: FutureKey): string | null {
  return sequence === null || sequence === undefined ? null : `${scope} ${sequence}`;
}

function digestOf({ kind, payload }: FutureKey): string {
  const content = payload instanceof Uint8Array ? payload : JSON.stringify(payload);
  return createHash('sha256').update(kind).update('\0').update(content).digest('hex');
}
