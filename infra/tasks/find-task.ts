import { basename } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task, TaskAddress } from '../../workflows/contracts/task.ts';
import type { DataSetAddress } from '../data-sets/address.ts';
import type { TaskDraft } from '../data-sets/data-set.ts';
import type { DataSetOpener } from '../data-sets/data-set-opener.ts';
import { type Bundles, bundleType } from '../harbor/bundle.ts';
import { type HarborTask, readHarborTask } from '../harbor/harbor-task.ts';
import { readTaskDirectory } from '../harbor/read-directory.ts';
import { withRoot } from '../harbor/with-root.ts';
import type { Store } from '../store/store.ts';
import { parseTaskAddress } from './address.ts';
import { generateTask } from './generated/generate.ts';
import { findTaskDirectories, resolveTaskDirectory } from './task-directories.ts';

/** A task of a set. An invalid task fails when it is read, so that it does not hide the others. */
export interface FoundTask {
  readonly id: string;
  readonly address: TaskAddress;
  /** Reads and validates the files, without writing to the store. */
  read(): Promise<HarborTask>;
  /** Validates the files and puts them into the store. */
  pack(): Promise<Task>;
}

export interface TaskFinder {
  find(address: TaskAddress): Promise<FoundTask>;
  /** The task of a data set whose draft is known already. */
  fromDraft(address: TaskAddress, draft: TaskDraft): FoundTask;
}

export interface TaskFinderDependencies {
  readonly store: Store;
  readonly roots: readonly string[];
  readonly bundles: Bundles;
  readonly dataSets: DataSetOpener;
}

export function createTaskFinder({ store, roots, bundles, dataSets }: TaskFinderDependencies): TaskFinder {
  const fromDraft = (address: TaskAddress, { id, files }: TaskDraft): FoundTask => ({
    id,
    address,
    read: () => withAddress(address, async () => readHarborTask(await files())),
    pack: () => withAddress(address, async () => bundles.pack(id, await files())),
  });

  async function find(address: TaskAddress): Promise<FoundTask> {
    const parsed = parseTaskAddress(address);
    if (parsed.kind === 'generated') {
      const { split, seed, index } = parsed;
      const id = `generated-${split}-${seed}-${index}`;
      return fromDraft(address, { id, files: async () => generateTask(split, seed, index) });
    }
    if (parsed.kind === 'blob') return findPacked(address, parsed.digest, parsed.task);
    if (parsed.kind === 'data-set') return fromDraft(address, await findDraft(parsed, address));
    const directory = await resolveTaskDirectory(roots, parsed.directory);
    if ((await findTaskDirectories(directory)).tasks[0] !== directory) {
      throw new TemperFailure(
        'UnknownTask',
        `${address}: expected one task, got a directory of tasks; name one of them`,
      );
    }
    const files = async () => {
      const tree = await readTaskDirectory(directory);
      return parsed.user === 'root' ? withRoot(tree) : tree;
    };
    return fromDraft(address, { id: basename(directory), files });
  }

  /** Finds a task that is packed already: the address names its bundle. */
  function findPacked(address: TaskAddress, digest: string, named: string | null): FoundTask {
    const id = named ?? `blob-${digest.slice(0, 12)}`;
    const open = async () => {
      const bundle = await store.describe(digest, bundleType);
      return { bundle, files: await bundles.open(bundle) };
    };
    return {
      id,
      address,
      read: async () => (await open()).files,
      async pack() {
        const { bundle, files } = await open();
        return { id, bundle, ...files.description };
      },
    };
  }

  async function findDraft(parsed: DataSetAddress, address: TaskAddress): Promise<TaskDraft> {
    if (parsed.task === null) {
      throw new TemperFailure(
        'UnknownTask',
        `${address}: expected one task, got a data set; name one as ${address}#<id>`,
      );
    }
    const dataSet = await dataSets.open(parsed);
    const draft = await dataSet.find(parsed.task);
    if (draft !== null) return draft;
    const ids = await dataSet.ids();
    const shown = `${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', …' : ''}`;
    throw new TemperFailure(
      'UnknownTask',
      `${address}: expected one of ${ids.length} tasks (${shown}), got ${JSON.stringify(parsed.task)}`,
    );
  }

  return { find, fromDraft };
}

/** Runs `work` and adds the task's address to a failure. */
async function withAddress<Result>(address: TaskAddress, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    throw new TemperFailure(error.type, `${address}: ${error.message}`, { cause: error });
  }
}

/** Maps the ids of a set's tasks to addresses. Throws TemperFailure InvalidInput when two tasks have the same id. */
export async function indexById(
  set: string,
  found: AsyncIterable<FoundTask>,
  addressOf: (task: FoundTask) => TaskAddress | Promise<TaskAddress>,
): Promise<ReadonlyMap<string, TaskAddress>> {
  const seen = new Map<string, { readonly from: TaskAddress; readonly address: TaskAddress }>();
  for await (const task of found) {
    const other = seen.get(task.id);
    if (other !== undefined) {
      throw new TemperFailure(
        'InvalidInput',
        `${set}: expected each id once, got ${task.id} for ${other.from} and ${task.address}; name a set with one of them`,
      );
    }
    seen.set(task.id, { from: task.address, address: await addressOf(task) });
  }
  return new Map([...seen].map(([id, { address }]) => [id, address]));
}
