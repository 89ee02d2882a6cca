import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Entry } from './category.ts';
import { isRemoved, listAll, listDirectory, lstatIfThere } from './directories.ts';

const blockBytes = 512;

/** Yields what killed removals left in a directory. */
export async function* interruptedRemovals(directory: string): AsyncIterable<Entry> {
  for (const { name, path } of await listAll(directory)) {
    if (!isRemoved(name)) continue;
    const bytes = await sizeOf(path);
    const remove = async (): Promise<number> => {
      await rm(path, { recursive: true, force: true });
      return bytes;
    };
    yield { name, path, bytes, expired: 'an interrupted removal left it', remove };
  }
}

/** Removes a file or directory. A directory loses its name first, so that a killed removal leaves no half of it under that name. */
export async function removeTree(path: string): Promise<void> {
  const found = await lstatIfThere(path);
  if (!found?.isDirectory()) return rm(path, { force: true });
  const removed = join(dirname(path), `.removed-${randomBytes(6).toString('hex')}`);
  try {
    await rename(path, removed);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw error;
  }
  await rm(removed, { recursive: true, force: true });
}

/** Makes an entry of a file or directory that is removed as a whole. */
export async function treeEntry(path: string, expired: string | null, name = basename(path)): Promise<Entry> {
  const bytes = await sizeOf(path);
  const remove = async (): Promise<number> => {
    await removeTree(path);
    return bytes;
  };
  return { name, path, bytes, expired, remove };
}

/** Returns the disk space of a file or directory in bytes; 0 if there is none. A file with several names counts in part. */
export async function sizeOf(path: string, signal?: AbortSignal): Promise<number> {
  signal?.throwIfAborted();
  const stats = await lstatIfThere(path);
  if (stats === null) return 0;
  const own = (stats.blocks * blockBytes) / Math.max(1, stats.isDirectory() ? 1 : stats.nlink);
  if (!stats.isDirectory()) return own;
  let total = own;
  // One file after the other: a size is never urgent, and a store has millions of files.
  for (const name of await readdir(path).catch(() => [])) total += await sizeOf(join(path, name), signal);
  return total;
}

/** Returns the time of the last change within a directory and its files, one level deep, in milliseconds. */
export async function lastChangeMs(path: string): Promise<number> {
  const own = (await lstatIfThere(path))?.mtimeMs ?? 0;
  return (await listDirectory(path)).reduce((last, { changedAtMs }) => Math.max(last, changedAtMs), own);
}
