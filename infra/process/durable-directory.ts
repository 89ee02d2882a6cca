import { mkdir, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** The refusals of file systems that cannot sync a directory, and of directories that this user may change but not read. */
const unable = new Set<unknown>(['EINVAL', 'EBADF', 'ENOTSUP', 'EACCES']);

/**
 * Makes the names in a directory durable. Before it, a power cut may undo the last renames, links and creations in it, although
 * the bytes of their files are on disk.
 */
export async function syncDirectory(path: string): Promise<void> {
  try {
    await using directory = await open(path);
    await directory.sync();
  } catch (error) {
    if (!unable.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}

/** Creates a directory and those above it, durably. */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode });
  if (first === undefined) return;
  const top = dirname(resolve(first));
  for (let above = dirname(resolve(path)); above.length >= top.length; above = dirname(above)) {
    await syncDirectory(above);
    if (above === top) return;
  }
}
