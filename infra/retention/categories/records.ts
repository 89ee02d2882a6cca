import { join } from 'node:path';
import type { Category, RetentionContext } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { interruptedRemovals, lastChangeMs, treeEntry } from '../trees.ts';

/** The records of runs, sweeps and regrades, one directory each, named by the key. */
export const records: Category = {
  name: 'records',
  keeps: 'everything; `--older-than` removes the records of runs, sweeps and regrades that ended before',
  refersToBlobs: true,
  where: ({ paths }) => [paths.runs],
  async *entries(context) {
    yield* interruptedRemovals(context.paths.runs);
    for (const { name, path, isDirectory } of await listDirectory(context.paths.runs)) {
      if (!isDirectory) continue;
      yield treeEntry(path, await whyExpired(context, name, await lastChangeMs(path)));
    }
  },
};

/** The trainer's journals: what each optimizer update was sent, and where its checkpoints are. A long run has past steps beside. */
export const trainerJournals: Category = {
  name: "trainer's journals",
  keeps: 'everything; `--older-than` removes those of runs that ended before',
  refersToBlobs: true,
  where: ({ paths }) => [paths.trainer],
  async *entries(context) {
    yield* interruptedRemovals(context.paths.trainer);
    const found = await listDirectory(context.paths.trainer);
    // The directory of a run's past steps comes before its journal, by which a killed pass is continued.
    for (const { name, path } of found) {
      const key = /^([0-9a-f-]{36})(?:\.json)?$/.exec(name)?.[1];
      if (key === undefined) continue;
      const times = found.flatMap((one) => (one.name.startsWith(key) ? [one.changedAtMs] : []));
      yield treeEntry(path, await whyExpired(context, key, Math.max(...times)));
    }
  },
};

/** Returns why a run's files go; null if they stay. The files of an open run stay, whatever their age. */
async function whyExpired(
  { cutoffMs, knowledge }: RetentionContext,
  key: string,
  changedAtMs: number,
): Promise<string | null> {
  if (cutoffMs === null || changedAtMs >= cutoffMs) return null;
  return (await knowledge.openKeys()).has(key) ? null : 'ended before the given age';
}

/** The packed task sets of `temper tasks add`, whose addresses users hold. */
export const packs: Category = {
  name: 'packed task sets',
  keeps:
    'everything; `--older-than` removes those that were added before and that no schedule and no open workflow names',
  refersToBlobs: true,
  where: ({ paths }) => [paths.packs],
  async *entries({ paths, cutoffMs }) {
    for (const { name, changedAtMs } of await listDirectory(paths.packs)) {
      const expired = cutoffMs !== null && changedAtMs < cutoffMs ? 'added before the given age' : null;
      yield treeEntry(join(paths.packs, name), expired);
    }
  },
};

/** Tasks with flaky tests and the evidence. */
export const quarantine: Category = {
  name: 'quarantine',
  keeps: 'everything, with its evidence; `temper tasks release` releases a task',
  refersToBlobs: true,
  where: ({ paths }) => [paths.quarantine],
  async *entries({ paths }) {
    for (const { path } of await listDirectory(paths.quarantine)) yield treeEntry(path, null);
  },
};
