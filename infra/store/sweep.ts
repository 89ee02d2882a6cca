import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { removeUnused, settleRemoved } from './directory.ts';

/** A blob as retention sees it. */
export interface StoredBlob {
  readonly digest: string;
  readonly bytes: number;
  /** Milliseconds since the epoch at which the blob was last put or described. */
  readonly usedAtMs: number;
}

/** A file that a killed process left in the store: an unfinished write or removal. */
export interface StoreLeftover {
  readonly path: string;
  readonly bytes: number;
  readonly usedAtMs: number;
}

/**
 * The part of a store that retention uses. It asks for nothing that an object store lacks: a listing with times, and a removal
 * on the condition that the object has not changed.
 */
export interface StoreSweep {
  /** Lists all blobs, folder by folder. */
  list(): AsyncIterable<StoredBlob>;
  leftovers(): AsyncIterable<StoreLeftover>;
  /** Removes a blob unless it was used at that time or later; returns whether it is gone. */
  remove(digest: string, unusedSinceMs: number): Promise<boolean>;
  /** Completes the removals that a killed process began; a blob that was used meanwhile gets its name back. */
  finishRemovals(unusedSinceMs: number): Promise<void>;
}

const digestName = /^[0-9a-f]{64}$/;
const removedName = /^([0-9a-f]{64})\.[0-9a-f]+\.removed$/;

export function createStoreSweep(root: string): StoreSweep {
  async function* files(wanted: RegExp): AsyncIterable<StoreLeftover & { readonly name: string }> {
    for (const folder of await namesIn(root)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await namesIn(join(root, folder))) {
        if (!wanted.test(name)) continue;
        const path = join(root, folder, name);
        const found = await statIfThere(path);
        if (found?.isFile()) yield { name, path, bytes: found.size, usedAtMs: found.mtimeMs };
      }
    }
  }

  return {
    async *list() {
      for await (const { name, bytes, usedAtMs } of files(digestName)) yield { digest: name, bytes, usedAtMs };
    },
    leftovers: () => files(/\.(tmp|removed)$/),
    remove: (digest, unusedSinceMs) => removeUnused(join(root, digest.slice(0, 2), digest), unusedSinceMs),
    async finishRemovals(unusedSinceMs) {
      for await (const { name, path } of files(removedName)) {
        await settleRemoved(path, join(root, name.slice(0, 2), name.slice(0, 64)), unusedSinceMs);
      }
    },
  };
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

function statIfThere(path: string) {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
