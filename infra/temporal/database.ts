import { mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type FileLock, tryLock } from '../process/file-lock.ts';
import { badDatabase, databaseLocked } from './server-error.ts';

const sqliteMagic = 'SQLite format 3\0';

/**
 * Claims a dev server's database file by a lock beside it. The dev server itself allows two processes to open one file, and they
 * then overwrite each other's shard.
 */
export async function claimDatabase(dbFile: string): Promise<{ readonly path: string; readonly lock: FileLock }> {
  const path = await canonicalPath(dbFile);
  const lock = await tryLock(`${path}.lock`);
  if ('holder' in lock) {
    const { pid } = lock.holder;
    throw databaseLocked(path, pid === null ? 'another server' : `the server with process id ${pid}`);
  }
  try {
    await checkHeader(path);
  } catch (error) {
    await lock.release();
    throw error;
  }
  return { path, lock };
}

/** The canonical path of the file, so that two links to it lead to the same lock. */
async function canonicalPath(dbFile: string): Promise<string> {
  const directory = dirname(resolve(dbFile));
  await mkdir(directory, { recursive: true });
  const absolute = join(await realpath(directory), basename(dbFile));
  return await realpath(absolute).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return absolute;
    throw error;
  });
}

async function checkHeader(path: string): Promise<void> {
  const file = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw badDatabase(path, `a path that cannot be opened for writing (${error.code})`);
  });
  if (file === undefined) return;
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(sqliteMagic.length), 0, sqliteMagic.length, 0);
    const head = buffer.subarray(0, bytesRead).toString('latin1');
    if (head !== '' && head !== sqliteMagic) throw badDatabase(path, 'a file of another kind');
  } finally {
    await file.close();
  }
}
