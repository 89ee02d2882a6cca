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
  /** Whether doing the request twice is harmless, so that it may be forgotten sooner. */
  readonly repeatable?: true;
}

/** Limits of what is remembered. The oldest goes first; a request that is not done yet stays. */
export const futureLimits = {
  /** Requests of one scope. A client repeats a request long before it has made as many others of the scope. */
  perScope: 1024,
  /** Requests without a sequence, repeatable ones and those of forgotten scopes, all together. */
  others: 4096,
  /** Large results that no client has read. */
  unread: 256,
  /** Bytes of large results that were read, and may be read again because the reply was lost. */
  readBytes: 4 * 2 ** 20,
} as const;

/**
 * Requests and their results. The same (scope, sequence) with the same payload is the same request: it is done once, even if
 * it fails. With another payload it is refused, and so is one that came so long ago that it was forgotten. Futures end with the
 * process, as models do.
 */
export interface Futures {
  /**
   * Returns the id of the same earlier request; null if the sequence was used for another payload or long ago; undefined for
   * a new request.
   */
  earlier(key: FutureKey): string | null | undefined;
  /** Returns the request's id; null if the sequence was used for another payload or long ago. */
  submit(key: FutureKey, work: () => Promise<FutureResult>): string | null;
  /**
   * Returns null after `waitMs`, undefined for an unknown id, and 'dropped' if the request is done but its result no longer
   * kept.
   */
  wait(id: string, waitMs: number): Promise<FutureResult | null | undefined | 'dropped'>;
  /** Forgets the sequences of a scope that takes no more requests. Results that were not read yet stay for a while. */
  forget(scope: string): void;
  /** Returns the number of requests that are remembered. */
  size(): number;
}

interface Entry {
  result: Promise<FutureResult> | 'dropped';
  /** The scope whose requests are forgotten in order; null for those that are remembered together. */
  readonly scope: string | null;
  /** The name in the map of sequences; null for a request without a sequence. */
  readonly name: string | null;
  readonly sequence: number;
}

/** The requests of a scope that are done, oldest first. */
interface Done {
  readonly ids: Set<string>;
  /** The number of those that are remembered. */
  readonly limit: number;
  /** The highest sequence that was forgotten. */
  forgotten: number;
}

const nothingDone = (limit: number): Done => ({ ids: new Set(), limit, forgotten: -1 });

export function createFutures(): Futures {
  const entries = new Map<string, Entry>();
  const sequences = new Map<string, { readonly id: string; readonly digest: string }>();
  const scopes = new Map<string, Done>();
  const others = nothingDone(futureLimits.others);
  const results = createKeptResults((id) => {
    const entry = entries.get(id);
    if (entry !== undefined) entry.result = 'dropped';
  });

  function retire(id: string, { scope }: Entry, result: FutureResult): void {
    // Small results stay as long as their requests are remembered.
    if (result.status === 200 && result.type === 'protobuf') results.add(id, result.bytes.length);
    remember((scope === null ? undefined : scopes.get(scope)) ?? others, id);
  }

  function remember(done: Done, id: string): void {
    done.ids.add(id);
    const [oldest] = done.ids;
    if (oldest === undefined || done.ids.size <= done.limit) return;
    done.ids.delete(oldest);
    forgetSequence(oldest);
    done.forgotten = Math.max(done.forgotten, entries.get(oldest)?.sequence ?? -1);
    entries.delete(oldest);
    results.remove(oldest);
  }

  function forgetSequence(id: string): void {
    const name = entries.get(id)?.name ?? '';
    // A new model may have the name of a forgotten one.
    if (sequences.get(name)?.id === id) sequences.delete(name);
  }

  function earlier(key: FutureKey): string | null | undefined {
    const { name, scope, sequence } = placeOf(key);
    const known = name === null ? undefined : sequences.get(name);
    if (known !== undefined) return known.digest === digestOf(key) ? known.id : null;
    return scope !== null && sequence <= (scopes.get(scope)?.forgotten ?? -1) ? null : undefined;
  }

  return {
    earlier,
    size: () => entries.size,
    submit(key, work) {
      const known = earlier(key);
      if (known !== undefined) return known;
      const id = randomUUID();
      const entry: Entry = { result: work(), ...placeOf(key) };
      const { scope, name, result } = entry;
      entries.set(id, entry);
      if (scope !== null && !scopes.has(scope)) scopes.set(scope, nothingDone(futureLimits.perScope));
      if (name !== null) sequences.set(name, { id, digest: digestOf(key) });
      if (result !== 'dropped') result.then((done) => retire(id, entry, done)).catch(() => undefined);
      return id;
    },
    async wait(id, waitMs) {
      const entry = entries.get(id);
      if (entry === undefined || entry.result === 'dropped') return entry?.result;
      const result = await orNull(entry.result, waitMs);
      if (result !== null) results.read(id);
      return result;
    },
    forget(scope) {
      const done = scopes.get(scope);
      scopes.delete(scope);
      for (const id of done?.ids ?? []) {
        forgetSequence(id);
        remember(others, id);
      }
    },
  };
}

/** Returns null when the result is not there after `waitMs`. */
async function orNull(result: Promise<FutureResult>, waitMs: number): Promise<FutureResult | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), waitMs);
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Keeps large results within their limits; `drop` is called for each that goes. */
function createKeptResults(drop: (id: string) => void) {
  const unread = new Map<string, number>();
  const read = new Map<string, number>();
  let readBytes = 0;
  const dropOldest = (of: Map<string, number>): number => {
    const [[id, bytes] = ['', 0]] = of;
    of.delete(id);
    drop(id);
    return bytes;
  };
  return {
    add(id: string, bytes: number): void {
      unread.set(id, bytes);
      if (unread.size > futureLimits.unread) dropOldest(unread);
    },
    read(id: string): void {
      const bytes = unread.get(id);
      if (bytes === undefined) return;
      unread.delete(id);
      read.set(id, bytes);
      readBytes += bytes;
      // The newest stays, however large it is.
      while (readBytes > futureLimits.readBytes && read.size > 1) readBytes -= dropOldest(read);
    },
    remove(id: string): void {
      unread.delete(id);
      readBytes -= read.get(id) ?? 0;
      read.delete(id);
    },
  };
}

function placeOf({ scope, sequence, repeatable }: FutureKey): Pick<Entry, 'scope' | 'name' | 'sequence'> {
  if (sequence === null || sequence === undefined) return { scope: null, name: null, sequence: -1 };
  return { scope: repeatable ? null : scope, name: `${scope} ${sequence}`, sequence };
}

function digestOf({ kind, payload }: FutureKey): string {
  const content = payload instanceof Uint8Array ? payload : JSON.stringify(payload);
  return createHash('sha256').update(kind).update('\0').update(content).digest('hex');
}
