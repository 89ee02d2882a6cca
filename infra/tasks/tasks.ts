import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { Store } from '../store/store.ts';
import { parseSetAddress, resolveBelow, type SetAddress, taskDirectories } from './addresses.ts';
import { createBundles } from './bundle.ts';
import { createDataSets, type DataSetCache } from './data-sets/data-sets.ts';
import { createTaskFinder, type FoundTask } from './find-task.ts';
import type { HarborTask } from './harbor.ts';
import { createRandom } from './random.ts';

/** Where tasks come from. Failures are TemperFailures UnknownTask, MalformedTask, UnsupportedTask, BlobMissing. */
export interface Tasks {
  /** Validates a task and puts its files into the store: from then on it is the same bytes everywhere. */
  resolve(address: TaskAddress): Promise<Task>;
  /** The task of an address, before it is packed. */
  find(address: TaskAddress): Promise<FoundTask>;
  /**
   * The address of a set's index-th task for training. A set that ends is gone through again and again, each time in
   * another order; the same set and index always give the same task.
   */
  taskAt(set: TaskSetAddress, index: number): Promise<TaskAddress>;
  /** The first tasks of a set, in order; fewer where it has fewer. */
  first(set: TaskSetAddress, count: number): Promise<readonly TaskAddress[]>;
  /** All of a set that ends, in order. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
  /** As `list`, with the tasks, one at a time: for sets of any size. */
  scan(set: TaskSetAddress): AsyncIterable<FoundTask>;
  /** The files of a resolved task. */
  open(task: Task): Promise<HarborTask>;
}

export interface TasksDependencies {
  readonly store: Store;
  /** Directories below which addresses with a path may point. */
  readonly roots: readonly string[];
  readonly dataSets: DataSetCache;
}

const addressList = z.array(z.string()).min(1);

export function createTasks({ store, roots, dataSets: cache }: TasksDependencies): Tasks {
  const bundles = createBundles(store);
  const dataSets = createDataSets({ cache, resolvePath: (path) => resolveBelow(roots, path) });

  const { found, find } = createTaskFinder({ store, roots, bundles, dataSets });

  async function list(set: TaskSetAddress): Promise<readonly TaskAddress[]> {
    const parsed = parseSetAddress(set);
    if (parsed.kind === 'harbor') {
      const directory = await resolveBelow(roots, parsed.directory);
      return (await taskDirectories(directory)).map((path) => `harbor:${path}`);
    }
    if (parsed.kind === 'blob') return listOf(parsed.digest, await store.getJson(parsed.digest));
    if (parsed.kind === 'data-set') {
      return parsed.task === null ? (await (await dataSets.open(parsed)).ids()).map((id) => `${set}#${id}`) : [set];
    }
    if (parsed.count === null) {
      throw new TemperFailure('UnknownTask', `${set}: expected a set that ends, for example ${set}?count=64`);
    }
    return Array.from({ length: parsed.count }, (_, index) => generated(parsed, index));
  }

  async function* scan(set: TaskSetAddress): AsyncIterable<FoundTask> {
    const parsed = parseSetAddress(set);
    if (parsed.kind === 'data-set' && parsed.task === null) {
      const dataSet = await dataSets.open(parsed);
      for await (const draft of dataSet.tasks()) yield found(`${set}#${draft.id}`, draft);
    } else {
      for (const address of await list(set)) yield await find(address);
    }
  }

  return {
    find,
    list,
    scan,
    resolve: async (address) => (await find(address)).pack(),
    async taskAt(set, index) {
      const parsed = parseSetAddress(set);
      if (parsed.kind === 'generated' && parsed.count === null) return generated(parsed, index);
      const all = await list(set);
      const round = createRandom(`${set}#${Math.floor(index / all.length)}`).shuffle(all);
      const address = round[index % all.length];
      if (address === undefined) throw new Error(`expected an index from 0, got ${index}`);
      return address;
    },
    async first(set, count) {
      const parsed = parseSetAddress(set);
      const endless = parsed.kind === 'generated' && parsed.count === null;
      return endless
        ? Array.from({ length: count }, (_, index) => generated(parsed, index))
        : (await list(set)).slice(0, count);
    },
    open: (task) => bundles.open(task.bundle),
  };
}

const generated = ({ split, seed }: Extract<SetAddress, { kind: 'generated' }>, index: number): TaskAddress =>
  `generated:${split}/${seed}/${index}`;

function listOf(digest: string, value: unknown): readonly TaskAddress[] {
  const parsed = addressList.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new TemperFailure('UnknownTask', `blob:${digest}: expected a JSON list of task addresses, got something else`);
}
