import { basename } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task, TaskAddress } from '../../workflows/contracts/task.ts';
import type { DataSetAddress } from '../data-sets/address.ts';
import type { TaskDraft } from '../data-sets/data-set.ts';
import type { DataSetOpener } from '../data-sets/data-set-opener.ts';
import type { Store } from '../store/store.ts';
import { parseTaskAddress, resolveBelow, taskDirectories } from './addresses.ts';
import { generateTask } from './generated/generate.ts';
import { type Bundles, bundleType } from './harbor/bundle.ts';
import { readTaskDirectory } from './harbor/directory.ts';
import { type HarborTask, readHarborTask } from './harbor/harbor.ts';

/** A task of a set. What is wrong with it is told when it is looked at: a broken one hides no other. */
export interface FoundTask {
  readonly id: string;
  readonly address: TaskAddress;
  /** Its files, validated; the store is left alone. */
  read(): Promise<HarborTask>;
  /** As `resolve`. */
  pack(): Promise<Task>;
}

export interface TaskFinder {
  find(address: TaskAddress): Promise<FoundTask>;
  found(address: TaskAddress, draft: TaskDraft): FoundTask;
}

export interface TaskFinderDependencies {
  readonly store: Store;
  readonly roots: readonly string[];
  readonly bundles: Bundles;
  readonly dataSets: DataSetOpener;
}

export function createTaskFinder({ store, roots, bundles, dataSets }: TaskFinderDependencies): TaskFinder {
  const found = (address: TaskAddress, { id, files }: TaskDraft): FoundTask => ({
    id,
    address,
    read: () => naming(address, async () => readHarborTask(await files())),
    pack: () => naming(address, async () => bundles.pack(id, await files())),
  });

  async function find(address: TaskAddress): Promise<FoundTask> {
    const parsed = parseTaskAddress(address);
    if (parsed.kind === 'generated') {
      const { split, seed, index } = parsed;
      const id = `generated-${split}-${seed}-${index}`;
      return found(address, { id, files: async () => generateTask(split, seed, index) });
    }
    if (parsed.kind === 'blob') return findBlob(address, parsed.digest);
    if (parsed.kind === 'data-set') return found(address, await draftOf(parsed, address));
    const directory = await resolveBelow(roots, parsed.directory);
    if ((await taskDirectories(directory))[0] !== directory) {
      throw new TemperFailure(
        'UnknownTask',
        `${address}: expected one task, got a directory of tasks; name one of them`,
      );
    }
    return found(address, { id: basename(directory), files: () => readTaskDirectory(directory) });
  }

  /** Packed already: its bundle is what the address names. */
  function findBlob(address: TaskAddress, digest: string): FoundTask {
    const id = `blob-${digest.slice(0, 12)}`;
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

  async function draftOf(parsed: DataSetAddress, address: TaskAddress): Promise<TaskDraft> {
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
      `${address}: expected one of ${ids.length} tasks (${shown}), got another id`,
    );
  }

  return { find, found };
}

/** A failure says which task it is about. */
async function naming<Result>(address: TaskAddress, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof TemperFailure)) throw error;
    throw new TemperFailure(error.type, `${address}: ${error.message}`, { cause: error });
  }
}
