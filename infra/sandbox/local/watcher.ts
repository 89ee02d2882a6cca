import { type FSWatcher, watch } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { HelperLostError, type Spawner } from '../../process/spawner/spawner.ts';
import type { LimitHit } from '../sandbox.ts';
import { commandPid, isRunning } from './processes.ts';
import { diskUsageMb, type ProcessTable, readProcessTable } from './resource-usage.ts';

/** A detached process to be watched, with the limits that the kernel does not enforce. */
export interface WatchedProcess {
  /** The process's control directory, in which its result appears. */
  readonly directory: string;
  readonly tree: string;
  readonly diskMb: number;
  /** Null if the kernel enforces it. */
  readonly memoryMb: number | null;
  /** Ends the process because it exceeds a limit. */
  end(limit: LimitHit): Promise<void>;
}

/**
 * Watches the detached processes of all sandboxes of a host. The end of a process is noticed by its result file. What has no such
 * event (a killed supervisor, disk, memory) is looked at in rounds over all processes; their pauses follow the time that they take,
 * so that many sandboxes are looked at less often instead of taking more of the machine.
 */
export interface Watcher {
  /** Resolves once the process may have ended, at the latest after `withinMs`. Meanwhile its limits are enforced. */
  untilEnded(process: WatchedProcess, withinMs: number, signal: AbortSignal): Promise<void>;
}

/** Looking for ends that had no event: a killed supervisor, or a system out of file watches. */
const endRounds = { everyMs: 500, share: 0.05 };
const memoryRounds = { everyMs: 1_000, share: 0.1 };
const diskRounds = { everyMs: 1_000, share: 0.25 };
/** The first measurement comes this late, so that short commands never pay for one. */
const firstMeasurementMs = 500;
/** The number of trees that one `du` walks: few enough that one very large tree delays few others. */
const treesPerCommand = 32;
/**
 * The number of failed measurements in a row that ends a process. An overloaded host fails once or twice; a tree that can't be
 * measured this often was made that way on purpose.
 */
const maxUnmeasured = 3;
/** The number of processes that are looked at before others get their turn. */
const sliceOfEnds = 50;
const longestTimerMs = 2 ** 31 - 1;

interface Entry extends WatchedProcess {
  readonly sinceMs: number;
  unmeasured: number;
  resolve(): void;
  reject(error: unknown): void;
}

export function createWatcher(spawner: Spawner): Watcher {
  const entries = new Set<Entry>();
  const rounds = [
    createRounds(entries, lookForEnds, endRounds),
    createRounds(entries, measureMemory, memoryRounds),
    createRounds(entries, () => measureDisk(entries, spawner), diskRounds),
  ];
  return {
    untilEnded: async (process, withinMs, signal) => {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const entry = { ...process, sinceMs: performance.now(), unmeasured: 0, resolve, reject };
      const abort = (): void => reject(signal.reason);
      signal.addEventListener('abort', abort);
      const timer = setTimeout(resolve, Math.min(withinMs, longestTimerMs));
      const files = watchResult(entry);
      entries.add(entry);
      for (const wake of rounds) wake();
      // The result may have been written before the watch began.
      look(entry);
      try {
        await promise;
      } finally {
        entries.delete(entry);
        files?.close();
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      }
    },
  };
}

interface Pace {
  /** The shortest time between the beginnings of two rounds. */
  readonly everyMs: number;
  /** The largest share of one core that the rounds take. */
  readonly share: number;
}

/** Returns a function that starts the rounds unless they are running. They stop when nothing is left to be watched. */
function createRounds(
  entries: ReadonlySet<Entry>,
  round: (entries: ReadonlySet<Entry>) => Promise<void>,
  { everyMs, share }: Pace,
): () => void {
  let running = false;
  const run = async (): Promise<void> => {
    for (let pauseMs = everyMs; entries.size > 0; ) {
      await delay(pauseMs, undefined, { ref: false });
      const startMs = performance.now();
      // A failure of the host fails those who wait; each of them retries.
      await round(entries).catch((error: unknown) => rejectAll(entries, error));
      const tookMs = performance.now() - startMs;
      pauseMs = Math.max(everyMs - tookMs, tookMs / share - tookMs);
    }
    running = false;
  };
  return () => {
    if (running) return;
    running = true;
    void run();
  };
}

function rejectAll(entries: Iterable<Entry>, error: unknown): void {
  for (const { reject } of entries) reject(error);
}

/** Watches for the result of a process. Undefined if the system has no file watch left; the rounds then notice the end. */
function watchResult(entry: Entry): FSWatcher | undefined {
  try {
    const watcher = watch(entry.directory, { persistent: false }, (_event, name) => {
      // The log in the same directory changes all the time.
      if (name === null || name === 'exit') look(entry);
    });
    watcher.on('error', () => look(entry));
    return watcher;
  } catch {
    return undefined;
  }
}

function look(entry: Entry): void {
  try {
    if (!isRunning(entry.directory)) entry.resolve();
  } catch (error) {
    entry.reject(error);
  }
}

async function lookForEnds(entries: ReadonlySet<Entry>): Promise<void> {
  for (const [index, entry] of [...entries].entries()) {
    if (index % sliceOfEnds === 0) await new Promise((resolve) => setImmediate(resolve));
    look(entry);
  }
}

async function measureMemory(entries: ReadonlySet<Entry>): Promise<void> {
  const measured = due(entries).filter(({ memoryMb }) => memoryMb !== null);
  if (measured.length === 0) return;
  const table = await readProcessTable();
  for (const entry of measured) if (isOverMemory(entry, table)) endFor(entry, 'memory');
}

function isOverMemory({ directory, memoryMb }: Entry, table: ProcessTable): boolean {
  const pid = commandPid(directory);
  return pid !== undefined && memoryMb !== null && table.residentMb(pid) > memoryMb;
}

async function measureDisk(entries: ReadonlySet<Entry>, spawner: Spawner): Promise<void> {
  const all = due(entries);
  // A tree that could not be measured is measured alone, so that it spoils no other's measurement.
  for (const entry of all.filter(({ unmeasured }) => unmeasured > 0)) await measureTrees([entry], spawner);
  const others = all.filter(({ unmeasured }) => unmeasured === 0);
  for (let from = 0; from < others.length; from += treesPerCommand) {
    await measureTrees(others.slice(from, from + treesPerCommand), spawner);
  }
}

async function measureTrees(entries: readonly Entry[], spawner: Spawner): Promise<void> {
  let usedMb: ReadonlyMap<string, number>;
  try {
    usedMb = await diskUsageMb(
      spawner,
      entries.map(({ tree }) => tree),
    );
  } catch (error) {
    // The next round has a new helper.
    if (!(error instanceof HelperLostError)) rejectAll(entries, error);
    return;
  }
  for (const entry of entries) {
    const used = usedMb.get(entry.tree);
    entry.unmeasured = used === undefined ? entry.unmeasured + 1 : 0;
    if (used === undefined ? entry.unmeasured >= maxUnmeasured : used > entry.diskMb) endFor(entry, 'disk');
  }
}

const due = (entries: ReadonlySet<Entry>): readonly Entry[] =>
  [...entries].filter(({ sinceMs }) => performance.now() - sinceMs >= firstMeasurementMs);

/** Ends a process, beside the round. */
function endFor(entry: Entry, limit: LimitHit): void {
  entry.end(limit).then(entry.resolve, entry.reject);
}
