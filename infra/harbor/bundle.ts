import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import { pack } from 'tar-stream';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { type FileTree, relativeSegments, unpackTree } from '../sandbox/files.ts';
import type { Store } from '../store/store.ts';
import { type HarborTask, readHarborTask } from './harbor-task.ts';

export const bundleType = 'application/x-tar';
const limits = { maxFiles: 20_000, maxBytes: 512 * 1024 * 1024 } as const;
/** The total size of the opened bundles in memory. A run reads the same few bundles repeatedly. */
const cacheBytes = 64 * 1024 * 1024;

export interface Bundles {
  /** Validates a task directory and puts it into the store. Equal files give equal bundles. */
  pack(id: string, tree: FileTree): Promise<Task>;
  /** Reads the files of a task. Throws TemperFailure MalformedTask when the bundle is invalid. */
  open(bundle: BlobRef): Promise<HarborTask>;
}

export function createBundles(store: Store): Bundles {
  const cache = new LRUCache<string, HarborTask>({ maxSize: cacheBytes });

  return {
    async pack(id, tree) {
      const { description } = readHarborTask(tree);
      return { id, bundle: await store.put(await packDeterministically(tree), bundleType), ...description };
    },
    async open({ digest }) {
      const known = cache.get(digest);
      if (known !== undefined) return known;
      const bytes = await store.get(digest);
      const task = readHarborTask(await unpackBundle(digest, bytes));
      cache.set(digest, task, { size: bytes.byteLength });
      return task;
    },
  };
}

/** Packs files with sorted names and without times or owners, so that equal files give equal bytes on every machine. */
async function packDeterministically(tree: FileTree): Promise<Uint8Array> {
  const tar = pack();
  const collected = buffer(tar);
  const paths = [...tree.keys()].sort();
  for (const path of paths) {
    const entry = tree.get(path);
    if (entry === undefined) continue;
    const mode = (entry.mode & 0o111) === 0 ? 0o644 : 0o755;
    const header = { name: relativeSegments(path).join('/'), mode, mtime: new Date(0), uid: 0, gid: 0 };
    tar.entry(header, Buffer.from(entry.bytes));
  }
  tar.finalize();
  return collected;
}

async function unpackBundle(digest: string, bytes: Uint8Array): Promise<FileTree> {
  return unpackTree(Readable.from([bytes]), limits).catch((cause: unknown) => {
    const text = `bundle ${digest}: expected a tar of a task directory, got: ${errorMessage(cause)}`;
    throw new TemperFailure('MalformedTask', text, { cause });
  });
}
