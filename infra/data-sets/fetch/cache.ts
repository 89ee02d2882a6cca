import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { exists } from '../../process/exists.ts';
import { withLock } from '../../process/file-lock.ts';

/**
 * Creates a file or directory of the cache once per host. `write` fills a draft, which is renamed when it is complete, so
 * that an incomplete file is never visible. A lock makes other processes wait instead of doing the same work.
 */
export async function createCached(target: string, write: (draft: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  await withLock(`${target}.lock`, async () => {
    if (await exists(target)) return;
    const draft = `${target}.${process.pid}.part`;
    await rm(draft, { recursive: true, force: true });
    try {
      await write(draft);
      await rename(draft, target);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
}

/** The failure for something that the cache lacks while downloads are forbidden. */
export const notCached = (what: string, target: string): TemperFailure =>
  new TemperFailure(
    'UnknownTask',
    `${what}: not in this host's cache (${target}), and downloads are off here; run \`temper tasks ls\` on this host with network access, or \`temper tasks add\` to put the tasks into the store`,
  );
