import { constants } from 'node:fs';
import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { tryLock as lockDescriptor } from 'fs-native-extensions';
import { inDirectory } from './in-directory.ts';

const pollMs = 200;

/** A lock file of which this process is the only holder. The kernel releases the lock when its last holder dies. */
export interface FileLock {
  /** The descriptor of the lock file. A child process that inherits it holds the lock as well, until it ends. */
  readonly fd: number;
  /** Records another process as the holder for those that find the lock taken. At first it is this process. */
  nameHolder(pid: number): Promise<void>;
  release(): Promise<void>;
}

/** A lock that another process, or another caller in this one, holds. Its pid is null while that process is recording it. */
export interface LockedElsewhere {
  readonly holder: { readonly pid: number | null };
}

/** Takes the lock if it is free. Creates the file and its directory. */
export async function tryLock(path: string): Promise<FileLock | LockedElsewhere> {
  const file = await inDirectory(path, () => openExclusive(path, { create: true }));
  if (file === null || file === 'locked-elsewhere') return { holder: { pid: await readHolder(path) } };
  const nameHolder = async (pid: number): Promise<void> => {
    await file.truncate();
    await file.write(`${pid}\n`, 0);
  };
  try {
    await nameHolder(process.pid);
  } catch (error) {
    // A full disk must not leave the lock taken until the handle is collected.
    await file.close();
    throw error;
  }
  return {
    fd: file.fd,
    nameHolder,
    // The file goes before the lock, so that no process can lock a file that is about to be removed.
    release: async () => {
      try {
        await rm(path, { force: true });
      } finally {
        await file.close();
      }
    },
  };
}

/** Waits for the lock, runs `work` and releases the lock. `onWait` is called once if another process holds it. */
export async function withLock<Result>(
  path: string,
  work: () => Result | Promise<Result>,
  options: { readonly onWait?: (holder: LockedElsewhere['holder']) => void; readonly signal?: AbortSignal } = {},
): Promise<Result> {
  let lock = await tryLock(path);
  if ('holder' in lock) options.onWait?.(lock.holder);
  while ('holder' in lock) {
    options.signal?.throwIfAborted();
    await sleep(pollMs);
    lock = await tryLock(path);
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/**
 * Opens a file that one process at a time may write, and whose writes are on disk when they return. The kernel holds the lock
 * and releases it when the file is closed or the process dies, so that no lock outlives its holder. Returns null when there is
 * no such file and none is to be created, and `locked-elsewhere` when another process has it.
 */
export async function openExclusive(
  path: string,
  { create }: { readonly create: boolean },
): Promise<FileHandle | 'locked-elsewhere' | null> {
  for (;;) {
    const flags = constants.O_RDWR | constants.O_DSYNC;
    const file = await (create ? open(path, flags | constants.O_CREAT, 0o600) : openIfThere(path, flags));
    if (file === null) return null;
    try {
      if (!lockDescriptor(file.fd)) {
        await file.close();
        return 'locked-elsewhere';
      }
      // The last holder may have removed the file meanwhile; then this lock guards a file that no other process can open.
      if (await isAt(path, file)) return file;
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
  }
}

function openIfThere(path: string, flags: number): Promise<FileHandle | null> {
  return open(path, flags).catch(nullIfMissing);
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [opened, named] = await Promise.all([file.stat(), stat(path).catch(nullIfMissing)]);
  return named !== null && named.ino === opened.ino && named.dev === opened.dev;
}

async function readHolder(path: string): Promise<number | null> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return /^\d+\n$/.test(text) ? Number(text) : null;
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
