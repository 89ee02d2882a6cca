import { stat, utimes } from 'node:fs/promises';

/**
 * Makes a file's or directory's time of change now, by which retention knows that it is in use. Returns whether it exists,
 * also if this user may not change it.
 */
export async function touch(path: string): Promise<boolean> {
  const now = new Date();
  try {
    await utimes(path, now, now);
    return true;
  } catch {
    return stat(path).then(
      () => true,
      () => false,
    );
  }
}
