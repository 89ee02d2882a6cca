import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';

/**
 * Opens a file that one process at a time may write, and whose writes are on disk when they return. The kernel keeps the lock
 * and lets go of it when the file is closed or the process dies, so that no lock outlives its holder. Null: there is no such
 * file.
 */
export async function openExclusive(
  path: string,
  { create }: { readonly create: boolean },
): Promise<FileHandle | 'held' | null> {
  for (;;) {
    const file = await openIfThere(path, constants.O_RDWR | constants.O_DSYNC | (create ? constants.O_CREAT : 0));
    if (file === null) return null;
    try {
      if (!tryLock(file.fd)) {
        await file.close();
        return 'held';
      }
      // Its last holder may have removed it meanwhile: nobody else will find the file whose lock this is.
      if (await isAt(path, file)) return file;
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
  }
}

function openIfThere(path: string, flags: number): Promise<FileHandle | null> {
  return open(path, flags, 0o600).catch(noneIfMissing);
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [held, named] = await Promise.all([file.stat(), stat(path).catch(noneIfMissing)]);
  return named !== null && named.ino === held.ino && named.dev === held.dev;
}

function noneIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
