import { type Category, dayMs } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { treeEntry } from '../trees.ts';

const keptMs = 30 * dayMs;

/** The cache of verdicts. What it loses costs one evaluation. */
export const cachedVerdicts: Category = {
  name: 'cached verdicts',
  keeps: 'verdicts that were cached or reused in the last 30 days; outcomes have their own verdicts, which stay',
  refersToBlobs: true,
  where: ({ paths }) => [paths.verdicts],
  async *entries({ paths, nowMs }) {
    for (const folder of await listDirectory(paths.verdicts)) {
      if (!folder.isDirectory) continue;
      for (const { path, changedAtMs } of await listDirectory(folder.path)) {
        yield treeEntry(path, nowMs - changedAtMs <= keptMs ? null : 'unused for 30 days');
      }
    }
  },
};
