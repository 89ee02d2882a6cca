import { limits } from '../../gateway/limits.ts';
import { openExclusive } from '../../process/file-lock.ts';
import type { Category, Entry } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { treeEntry } from '../trees.ts';

/** The gateway's journals of turns. The gateway removes old ones itself, each minute; this covers a home without one. */
export const journals: Category = {
  name: 'journals',
  keeps: 'what the gateway wrote in the last seven days, and sessions that it has open; the turns are in the traces',
  refersToBlobs: true,
  where: ({ paths }) => [paths.journals],
  async *entries({ paths, nowMs }) {
    for (const { path, changedAtMs, isDirectory } of await listDirectory(paths.journals)) {
      if (isDirectory) continue;
      const stays = nowMs - changedAtMs <= limits.retentionMs;
      const entry = await treeEntry(path, stays ? null : 'not written for seven days');
      yield path.endsWith('.jsonl') && !stays ? unlessOpen(entry) : entry;
    }
  },
};

/** Leaves a journal that a gateway has open. */
function unlessOpen(entry: Entry): Entry {
  return {
    ...entry,
    async remove() {
      const file = await openExclusive(entry.path, { create: false });
      if (file === null || file === 'locked-elsewhere') return 0;
      try {
        return await entry.remove();
      } finally {
        await file.close();
      }
    },
  };
}
