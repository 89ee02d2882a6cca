import { createHash, randomUUID } from 'node:crypto';

/** What a request came to: bytes for retrieve_future, or a failure with its status. */
export type Outcome =
  | { readonly status: 200; readonly type: 'protobuf'; readonly bytes: Buffer }
  | { readonly status: 200; readonly type: 'json'; readonly body: unknown }
  | { readonly status: 400 | 500; readonly detail: string };

export interface FutureKey {
  /** Scope of the sequence: a model, or a sampling session. */
  readonly scope: string;
  readonly sequence: number | null | undefined;
  readonly kind: string;
  /** What was asked for, byte by byte or as a value that JSON can carry. */
  readonly payload: Uint8Array | unknown;
}

/** Large results that are kept; older ones are dropped, their requests are still never done again. */
const keptResults = 256;

/**
 * Requests and their results. The same (scope, sequence) with the same payload is the same request, done once, its failure
 * included; with another payload it is refused. Nothing of this outlives the process: models don't either.
 */
export interface Futures {
  /** The id of the same request made before; null: the sequence was used for another payload; undefined: a new one. */
  earlier(key: FutureKey): string | null | undefined;
  /** The request's id; null: the sequence was used for another payload. */
  submit(key: FutureKey, work: () => Promise<Outcome>): string | null;
  /** Null after `waitMs`; undefined: unknown id; 'dropped': done, result no longer kept. */
  wait(id: string, waitMs: number): Promise<Outcome | null | undefined | 'dropped'>;
}

interface Entry {
  outcome: Promise<Outcome> | 'dropped';
}

export function createFutures(): Futures {
  const entries = new Map<string, Entry>();
  const sequences = new Map<string, { readonly id: string; readonly digest: string }>();
  const settled: string[] = [];

  function retire(id: string, outcome: Outcome): void {
    // Small results are kept for good, so that any retry finds them.
    if (outcome.status !== 200 || outcome.type === 'json') return;
    settled.push(id);
    const oldest = settled.length > keptResults ? settled.shift() : undefined;
    const entry = oldest === undefined ? undefined : entries.get(oldest);
    if (entry !== undefined) entry.outcome = 'dropped';
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
      const outcome = work();
      entries.set(id, { outcome });
      if (name !== null) sequences.set(name, { id, digest: digestOf(key) });
      outcome.then((done) => retire(id, done)).catch(() => undefined);
      return id;
    },
    async wait(id, waitMs) {
      const entry = entries.get(id);
      if (entry === undefined || entry.outcome === 'dropped') return entry?.outcome;
      const { promise: late, resolve } = Promise.withResolvers<null>();
      const timer = setTimeout(() => resolve(null), waitMs);
      try {
        return await Promise.race([entry.outcome, late]);
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
