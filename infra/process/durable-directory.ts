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

/** The directories whose names this process has made durable. */
const durable = new Set<string>();
/** The largest number of them: a long-lived process would remember one for each group of a run. */
const mostRemembered = 10_000;

/**
 * Creates a directory and those above it, durably. The names of directories that exist are made durable once as well: the process
 * that made them may have been killed before it did.
 */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  const made = resolve(path);
  const first = await mkdir(made, { recursive: true, mode });
  const isNew = (at: string): boolean => first !== undefined && at.length >= first.length;
  for (let at = made; isNew(at) || !durable.has(at); at = dirname(at)) {
    const above = dirname(at);
    if (above === at) return;
    await syncDirectory(above);
    if (durable.size === mostRemembered) durable.clear();
    durable.add(at);
  }
}
