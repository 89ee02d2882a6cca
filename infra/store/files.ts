import { createHash, randomBytes } from 'node:crypto';
import { type BigIntStats, existsSync } from 'node:fs';
import { link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { makeDirectory, syncDirectory } from '../process/durable-directory.ts';
import { inDirectory } from '../process/in-directory.ts';

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Writes a file, or replaces it. After a crash it is the old one or the new one, whole; it is the new one once the call has
 * returned, also after a power cut. Throws TemperFailure DiskFull or StoreUnavailable.
 */
export async function replaceFile(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<void> {
  const temporary = await writeTemporary(path, bytes, mode);
  try {
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw storeFailure(path, error);
  }
}

/**
 * Creates a file with all its content, durably, and returns its state; null if there is one already, which is durable then, too.
 * Throws TemperFailure DiskFull or StoreUnavailable.
 */
export async function createFile(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<BigIntStats | null> {
  const temporary = await writeTemporary(path, bytes, mode);
  try {
    const created = await stat(temporary, { bigint: true });
    // A link fails if the name is taken, where a rename would replace it.
    const isNew = await link(temporary, path).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        return false;
      },
    );
    await syncDirectory(dirname(path));
    return isNew ? created : null;
  } catch (error) {
    throw storeFailure(path, error);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Creates a file of the home with all its content, unless there is one. */
export async function createOnce(path: string, content: string, mode: number): Promise<void> {
  if (existsSync(path)) return;
  await makeDirectory(dirname(path), 0o755);
  await createFile(path, content, mode);
}

/** Writes and syncs a file beside `path`, and returns the name that it has until it gets that one. */
export async function writeTemporary(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await inDirectory(temporary, () => open(temporary, 'wx', mode));
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return temporary;
  } catch (error) {
    // A name below something that is no directory cannot be removed either, and the first error is the one to tell.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw storeFailure(path, error);
  }
}

/** Attributes an error of the file system; a failure that is attributed already stays as it is. */
export function storeFailure(path: string, cause: unknown): TemperFailure {
  if (cause instanceof TemperFailure) return cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT'
    ? new TemperFailure('DiskFull', `no space left to write ${path}; free some space; the stage is retried`, { cause })
    : new TemperFailure('StoreUnavailable', `cannot use ${path}: ${message}`, { cause });
}
