import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskAddress } from '../../workflows/contracts/task.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import type { FoundTask } from './find-task.ts';
import { forEachConcurrently } from './for-each-concurrently.ts';
import type { Tasks } from './tasks.ts';

/** Tasks that are read at once: reading a task waits for the disk. */
const readAtOnce = 8;

/** A way to find a task, which may fail. */
type Find = () => Promise<FoundTask>;

/** Reads tasks, and returns what was seen of each, in their order. One that cannot be read ends as such when it starts. */
export async function lookAtTasks<Seen>(
  tasks: AsyncIterable<Find>,
  look: (task: HarborTask, found: FoundTask) => Seen,
  signal: AbortSignal,
): Promise<readonly Seen[]> {
  const seen = new Map<number, Seen>();
  async function read([index, find]: readonly [number, Find]): Promise<void> {
    try {
      const found = await find();
      seen.set(index, look(await found.read(), found));
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
    }
  }
  await forEachConcurrently(numbered(tasks), readAtOnce, read, signal);
  signal.throwIfAborted();
  return [...seen].sort(([one], [other]) => one - other).map(([, what]) => what);
}

async function* numbered<Item>(items: AsyncIterable<Item>): AsyncIterable<readonly [number, Item]> {
  let index = 0;
  for await (const item of items) {
    yield [index, item];
    index += 1;
  }
}

/** Yields the tasks of a set, apart from some. */
export async function* allBut(
  scanned: AsyncIterable<FoundTask>,
  skipped: ReadonlySet<TaskAddress>,
): AsyncIterable<Find> {
  for await (const task of scanned) if (!skipped.has(task.address)) yield async () => task;
}

/** Yields the tasks of some addresses. */
export async function* named(tasks: Pick<Tasks, 'find'>, addresses: readonly TaskAddress[]): AsyncIterable<Find> {
  for (const address of addresses) yield () => tasks.find(address);
}
