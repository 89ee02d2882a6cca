import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';

/**
 * Opens a file that one process at a time may write, and whose writes are on disk when they return. The kernel holds the lock
 * and releases it when the file is closed or the process dies, so that no lock outlives its holder. Returns null when there is
 * no such file, and `locked-elsewhere` when another process has it.
 */
export async function openExclusive(
  path: string,
  { create }: { readonly create: boolean },
): Promise<FileHandle | 'locked-elsewhere' | null> {
  for (;;) {
    const file = await openIfThere(path, constants.O_RDWR | constants.O_DSYNC | (create ? constants.O_CREAT : 0));
    if (file === null) return null;
    try {
      if (!tryLock(file.fd)) {
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
  return open(path, flags, 0o600).catch(nullIfMissing);
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [opened, named] = await Promise.all([file.stat(), stat(path).catch(nullIfMissing)]);
  return named !== null && named.ino === opened.ino && named.dev === opened.dev;
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
