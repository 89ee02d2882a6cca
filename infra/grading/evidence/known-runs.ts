import type { Evidence } from './evidence.ts';

/** The result of a task's tests without an agent's work. */
export interface KnownRun {
  /** Whether they give the full reward. */
  readonly isSolved: boolean;
  readonly reward: number;
  /** The limit that has cut the run short: its time, or one of its sandbox; null if it came to its own end. */
  readonly cutBy: 'time' | 'limit' | null;
  readonly evidence: readonly Evidence[];
}

/** Runs of the tests without an agent's work, each kept for a while. An evaluation that asks while one is in progress waits for it. */
export interface KnownRuns {
  /** Tasks and steps whose reference solution is known to have the full reward without some of its network's hosts. */
  readonly solvable: Set<string>;
  /** Returns the run of a key. Runs it if it is not known, but only once at a time in this process. */
  get(key: string, run: () => Promise<KnownRun>, signal: AbortSignal): Promise<KnownRun>;
}

/** The time after which a run without the full reward is repeated: an operator may have repaired the host, or replaced the image. */
const keptMs = 10 * 60_000;

interface Entry {
  readonly run: Promise<KnownRun>;
  readonly owner: AbortSignal;
  untilMs: number;
}

export function createKnownRuns(now: () => number = Date.now): KnownRuns {
  const entries = new Map<string, Entry>();

  function begin(key: string, run: () => Promise<KnownRun>, owner: AbortSignal): Entry {
    for (const [old, { untilMs }] of entries) if (untilMs <= now()) entries.delete(old);
    const entry: Entry = { run: run(), owner, untilMs: Number.POSITIVE_INFINITY };
    entries.set(key, entry);
    entry.run.then(
      ({ isSolved }) => {
        if (!isSolved) entry.untilMs = now() + keptMs;
      },
      () => entries.get(key) === entry && entries.delete(key),
    );
    return entry;
  }

  return {
    solvable: new Set(),
    async get(key, run, signal) {
      for (;;) {
        const known = entries.get(key);
        const entry = known !== undefined && known.untilMs > now() ? known : begin(key, run, signal);
        try {
          return await orAborted(entry.run, signal);
        } catch (error) {
          signal.throwIfAborted();
          // The end of another evaluation says nothing about the task.
          if (entry.owner === signal || !entry.owner.aborted) throw error;
        }
      }
    },
  };
}

/** Waits for a promise, but no longer than until the signal aborts. */
async function orAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
