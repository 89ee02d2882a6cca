import { basename } from 'node:path';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task, TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { Store } from '../store/store.ts';
import { parseSetAddress, parseTaskAddress, resolveBelow, type SetAddress, taskDirectories } from './addresses.ts';
import { bundleType, createBundles } from './bundle.ts';
import { readTaskDirectory } from './directory.ts';
import { generateTask } from './generate.ts';
import type { HarborTask } from './harbor.ts';
import { createRandom } from './random.ts';

/** Where tasks come from. Failures are TemperFailures UnknownTask, MalformedTask, UnsupportedTask, BlobMissing. */
export interface Tasks {
  /** Validates a task and puts its files into the store: from then on it is the same bytes everywhere. */
  resolve(address: TaskAddress): Promise<Task>;
  /**
   * The address of a set's index-th task for training. A set that ends is gone through again and again, each time in
   * another order; the same set and index always give the same task.
   */
  taskAt(set: TaskSetAddress, index: number): Promise<TaskAddress>;
  /** All of a set that ends, in order. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
  /** The files of a resolved task. */
  open(task: Task): Promise<HarborTask>;
}

export interface TasksDependencies {
  readonly store: Store;
  /** Directories below which `harbor:` addresses may point. */
  readonly roots: readonly string[];
}

const addressList = z.array(z.string()).min(1);

export function createTasks({ store, roots }: TasksDependencies): Tasks {
  const bundles = createBundles(store);

  async function resolve(address: TaskAddress): Promise<Task> {
    const parsed = parseTaskAddress(address);
    if (parsed.kind === 'generated') {
      const { split, seed, index } = parsed;
      return bundles.pack(`generated-${split}-${seed}-${index}`, generateTask(split, seed, index));
    }
    if (parsed.kind === 'blob') {
      const bundle = await store.describe(parsed.digest, bundleType);
      const { description } = await bundles.open(bundle);
      return { id: `blob-${parsed.digest.slice(0, 12)}`, bundle, ...description };
    }
    const directory = await resolveBelow(roots, parsed.directory);
    if ((await taskDirectories(directory))[0] !== directory) {
      throw new TemperFailure(
        'UnknownTask',
        `${address}: expected one task, got a directory of tasks; name one of them`,
      );
    }
    return bundles.pack(basename(directory), await readTaskDirectory(directory)).catch((error: unknown) => {
      throw error instanceof TemperFailure
        ? new TemperFailure(error.type, `${address}: ${error.message}`, { cause: error })
        : error;
    });
  }

  async function list(set: TaskSetAddress): Promise<readonly TaskAddress[]> {
    const parsed = parseSetAddress(set);
    if (parsed.kind === 'harbor') {
      const directory = await resolveBelow(roots, parsed.directory);
      return (await taskDirectories(directory)).map((path) => `harbor:${path}`);
    }
    if (parsed.kind === 'blob') return listOf(parsed.digest, await store.getJson(parsed.digest));
    if (parsed.count === null) {
      throw new TemperFailure('UnknownTask', `${set}: expected a set that ends, for example ${set}?count=64`);
    }
    return Array.from({ length: parsed.count }, (_, index) => generated(parsed, index));
  }

  return {
    resolve,
    list,
    async taskAt(set, index) {
      const parsed = parseSetAddress(set);
      if (parsed.kind === 'generated' && parsed.count === null) return generated(parsed, index);
      const all = await list(set);
      const round = createRandom(`${set}#${Math.floor(index / all.length)}`).shuffle(all);
      const address = round[index % all.length];
      if (address === undefined) throw new Error(`expected an index from 0, got ${index}`);
      return address;
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
