import { join } from 'node:path';
import { pathsBelow } from '../../paths.ts';
import { openExclusive, tryLock } from '../../process/file-lock.ts';
import { type Category, dayMs, type Entry } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { interruptedRemovals, lastChangeMs, removeTree, treeEntry } from '../trees.ts';

const keptMs = 14 * dayMs;

/** The homes that `temper demo` makes in the cache. */
export const demoHomes: Category = {
  name: 'demo homes',
  keeps: 'homes of demos whose stack ran in the last 14 days, or runs now',
  where: ({ cacheDir }) => [join(cacheDir, 'demo')],
  async *entries({ cacheDir, nowMs }) {
    const parent = join(cacheDir, 'demo');
    yield* interruptedRemovals(parent);
    for (const { path, isDirectory } of await listDirectory(parent)) {
      if (!isDirectory) continue;
      const { lock, logs } = pathsBelow(path);
      const changedAtMs = Math.max(await lastChangeMs(path), await lastChangeMs(logs));
      const stays = nowMs - changedAtMs <= keptMs || (await isLocked(lock));
      const entry = await treeEntry(path, stays ? null : 'no stack ran on it for 14 days');
      yield { ...entry, remove: () => removeUnlocked(lock, entry) };
    }
  },
};

async function isLocked(path: string): Promise<boolean> {
  const file = await openExclusive(path, { create: false });
  if (file === 'locked-elsewhere') return true;
  await file?.close();
  return false;
}

/** Removes a home under the lock of its stack, so that none starts on it meanwhile. */
async function removeUnlocked(lockFile: string, { path, bytes }: Entry): Promise<number> {
  const lock = await tryLock(lockFile);
  if ('holder' in lock) return 0;
  try {
    await removeTree(path);
    return bytes;
  } finally {
    await lock.release();
  }
}
