import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackArchive } from '../../../infra/data-sets/fetch/archive.ts';
import { optionalData } from '../../helpers/optional-data.ts';

export interface BenchSet {
  readonly address: string;
  /** The tasks that are measured, in words. */
  readonly what: string;
  readonly root: string | null;
}

/** Unpacks the pack of real tasks below `directory`; without it, names as many generated tasks as asked for. */
export async function benchSet(directory: string, count: number): Promise<BenchSet> {
  const found = await stat(optionalData.taskPack).catch(() => null);
  if (found === null) {
    return {
      address: `generated:test/1?count=${count}`,
      what: `${count} generated tasks (no pack at ${optionalData.taskPack})`,
      root: null,
    };
  }
  const root = join(await unpackArchive(optionalData.taskPack, directory), 'tasks-visible');
  return { address: `harbor:${root}`, what: 'the visible pack', root };
}

/** Returns a number of items of a list, evenly spread over it. */
export function spread<Item>(all: readonly Item[], count: number): readonly Item[] {
  const share = Math.min(1, count / all.length);
  return all.filter((_, index) => Math.floor((index + 1) * share + 1e-9) > Math.floor(index * share + 1e-9));
}
