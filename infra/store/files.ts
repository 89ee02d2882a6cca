import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Store } from './store.ts';

/** Creates a store in a directory: `<root>/<first two hex digits>/<sha256>`. Each file is synced before it gets its name. */
export function createFileStore(root: string): Store {
  const pathOf = (digest: string): string => {
    if (!/^[0-9a-f]{64}$/.test(digest)) {
      throw new TemperFailure('BlobMissing', `expected a sha256 in lower-case hex, got ${JSON.stringify(digest)}`);
    }
    return join(root, digest.slice(0, 2), digest);
  };

  async function put(bytes: Uint8Array, mediaType: string): Promise<BlobRef> {
    const digest = sha256(bytes);
    const path = pathOf(digest);
    if (!(await renew(path, bytes.byteLength))) await writeOnce(path, bytes);
    return { digest, size: bytes.byteLength, mediaType };
  }

  async function get(digest: string): Promise<Uint8Array> {
    const bytes = await readFile(pathOf(digest)).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT'
        ? new TemperFailure(
            'BlobMissing',
            `the store ${root} has no blob ${digest}; it may be in another stack's store`,
          )
        : storeFailure(root, error);
    });
    if (sha256(bytes) !== digest) {
      throw new TemperFailure(
        'BlobMissing',
        `the store's file of ${digest} has other content; remove it: ${pathOf(digest)}`,
      );
    }
    return bytes;
  }

  return {
    put,
    get,
    putJson: (value) => put(new TextEncoder().encode(JSON.stringify(value)), 'application/json'),
    getJson: async (digest) => JSON.parse(new TextDecoder().decode(await get(digest))),
    has: (digest) =>
      stat(pathOf(digest)).then(
        () => true,
        () => false,
      ),
    async describe(digest, mediaType) {
      const size = (await get(digest)).byteLength;
      await renew(pathOf(digest), size);
      return { digest, size, mediaType };
    },
  };
}

/**
 * Makes the file's time of last use now, so that retention, which removes old blobs that nothing refers to, leaves this one for
 * its new reference. Returns false if there is no file of that size that this process may change.
 */
async function renew(path: string, size: number): Promise<boolean> {
  try {
    if ((await stat(path)).size !== size) return false;
    const now = new Date();
    await utimes(path, now, now);
    return true;
  } catch {
    return false;
  }
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Writes a file so that after a crash it exists completely or not at all. Throws TemperFailure DiskFull or StoreUnavailable. */
export async function writeOnce(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw storeFailure(path, error as NodeJS.ErrnoException);
  }
}

function storeFailure(path: string, cause: NodeJS.ErrnoException): TemperFailure {
  const full = cause.code === 'ENOSPC' || cause.code === 'EDQUOT';
  return full
    ? new TemperFailure('DiskFull', `no space left to write ${path}; free some space; the stage is retried`, {
        cause,
      })
    : new TemperFailure('StoreUnavailable', `cannot use ${path}: ${cause.message}`, { cause });
}
