import { type FileHandle, open } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';

/** A hold on a file lock, which the kernel releases when its holder dies. */
export interface Hold {
  release(): Promise<void>;
}

/** Takes the lock as one of its users; null while a process holds it alone. */
export function tryUse(path: string): Promise<Hold | null> {
  return tryHold(path, true);
}

/** Takes the lock alone; null while it has another holder. */
export function tryHoldAlone(path: string): Promise<Hold | null> {
  return tryHold(path, false);
}

async function tryHold(path: string, shared: boolean): Promise<Hold | null> {
  const file: FileHandle = await open(path, 'a+', 0o600);
  try {
    if (tryLock(file.fd, 0, 0, { shared })) return { release: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return null;
}
