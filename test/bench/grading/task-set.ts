import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackArchive } from '../../../infra/data-sets/fetch/archive.ts';

export interface BenchSet {
  readonly address: string;
  /** What is measured, in words. */
  readonly what: string;
  readonly root: string | null;
}

/** A pack of real tasks, where somebody has put it beside the checkout. */
const pack = join(import.meta.dirname, '../../../../shared/data/tasks-visible.tar.gz');

/** The pack, unpacked below `directory`; without it as many tasks as asked for by our own generator. */
export async function benchSet(directory: string, count: number): Promise<BenchSet> {
  const found = await stat(pack).catch(() => null);
  if (found === null) {
    return {
      address: `generated:test/1?count=${count}`,
      what: `${count} generated tasks (no pack at ${pack})`,
      root: null,
    };
  }
  const root = join(await unpackArchive(pack, directory), 'tasks-visible');
  return { address: `harbor:${root}`, what: 'the visible pack', root };
}

/** So many of a list, evenly spread over it. */
export function spread<Item>(all: readonly Item[], count: number): readonly Item[] {
  const share = Math.min(1, count / all.length);
  return all.filter((_, index) => Math.floor((index + 1) * share + 1e-9) > Math.floor(index * share + 1e-9));
}
