import { randomBytes } from 'node:crypto';
import { link, open, readdir, rename, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../process/durable-directory.ts';
import { withLock } from '../process/file-lock.ts';
import { touch } from '../process/touch.ts';
import { createFile, replaceFile, storeFailure } from './files.ts';
import {
  checkedKey,
  type FoundObject,
  type Leftover,
  type ListedObject,
  type ObjectFacts,
  type Objects,
} from './objects.ts';

/** The home of a stack: everything that a stack keeps is below one directory. */
export interface DirectoryPlace {
  readonly kind: 'directory';
  readonly root: string;
}

/** Names that are no objects: unfinished writes, removals and locks. */
const unlisted = /\.(tmp|removed|lock)$/;

/**
 * Keeps objects as files below a directory. Each is synced before it gets its name, and its name before a call returns. Times of change are those of the files, so
 * that objects can be listed without a look into them.
 */
export function createDirectory(root: string): Objects {
  const pathOf = (key: string): string => join(root, checkedKey(key));
  return {
    location: root,
    get: (key) => reading(pathOf(key), readWithVersion),
    stat: (key) => reading(pathOf(key), factsOf),
    peek: (key, most) => reading(pathOf(key), (path) => readBeginning(path, most)),
    async putOnce(key, bytes) {
      const path = pathOf(key);
      if (!(await renewed(path, bytes.byteLength))) await replaceFile(path, bytes);
    },
    replace: (key, bytes, version) =>
      version === null ? create(pathOf(key), bytes) : replaceVersion(pathOf(key), bytes, version),
    renew: (key) => touch(pathOf(key)),
    list: (folder) => listBelow(root, checkedKey(folder)),
    remove: (key, unusedSinceMs) => writing(pathOf(key), (path) => removeUnused(root, path, unusedSinceMs)),
    async *leftovers(folders) {
      for (const folder of folders) yield* leftoversBelow(root, checkedKey(folder));
    },
  };
}

async function readWithVersion(path: string): Promise<FoundObject> {
  const file = await open(path);
  try {
    const version = versionOf(await file.stat({ bigint: true }));
    return { bytes: await file.readFile(), version };
  } finally {
    await file.close();
  }
}

async function readBeginning(path: string, most: number): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(most), 0, most, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Every write makes a new file, so that its number and time tell versions apart. */
const versionOf = ({ ino, mtimeNs }: { readonly ino: bigint; readonly mtimeNs: bigint }): string => `${ino}-${mtimeNs}`;

async function factsOf(path: string): Promise<ObjectFacts> {
  const { size, mtimeMs } = await stat(path);
  return { size, changedAtMs: mtimeMs };
}

/** The age from which the writer of a file has made its name durable, or the file system has. */
const settledMs = 60_000;

/** Makes the time of a file now. Returns false if there is no file of that size that this process may change. */
async function renewed(path: string, size: number): Promise<boolean> {
  try {
    const found = await stat(path);
    if (found.size !== size) return false;
    const now = new Date();
    await utimes(path, now, now);
    if (now.getTime() - found.birthtimeMs < settledMs) await syncDirectory(dirname(path));
    return true;
  } catch {
    return false;
  }
}

async function create(path: string, bytes: Uint8Array): Promise<string | null> {
  const created = await createFile(path, bytes);
  return created === null ? null : versionOf(created);
}

function replaceVersion(path: string, bytes: Uint8Array, version: string): Promise<string | null> {
  return writing(path, () =>
    withLock(`${path}.lock`, async () => {
      const found = await reading(path, (at) => stat(at, { bigint: true }));
      if (found === null || versionOf(found) !== version) return null;
      await replaceFile(path, bytes);
      return versionOf(await stat(path, { bigint: true }));
    }),
  );
}

async function* listBelow(root: string, folder: string): AsyncIterable<ListedObject> {
  for await (const key of filesBelow(root, folder)) {
    if (unlisted.test(key)) continue;
    const facts = await reading(join(root, key), factsOf);
    if (facts !== null) yield { key, ...facts };
  }
}

async function* filesBelow(root: string, folder: string): AsyncIterable<string> {
  const entries = await reading(join(root, folder), (path) => readdir(path, { withFileTypes: true }));
  for (const entry of entries ?? []) {
    // No key has a part that begins with a dot; see checkedKey.
    if (entry.name.startsWith('.')) continue;
    const key = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* filesBelow(root, key);
    else yield key;
  }
}

async function* leftoversBelow(root: string, folder: string): AsyncIterable<Leftover> {
  for await (const key of filesBelow(root, folder)) {
    const [, object, kind] = /^(.*)\.[0-9a-f]+\.(tmp|removed)$/.exec(key) ?? [];
    if (object === undefined) continue;
    const path = join(root, key);
    const facts = await reading(path, factsOf);
    if (facts === null) continue;
    yield {
      ...facts,
      name: key,
      kind: kind === 'tmp' ? 'write' : 'removal',
      settle: (unusedSinceMs) =>
        writing(path, async () => {
          if (kind === 'removed')
            return settleRemoved({ removed: path, path: join(root, object), root }, unusedSinceMs);
          await rm(path, { force: true });
          return true;
        }),
    };
  }
}

/** A file that has lost its name, and what its name was below the root. */
interface Removal {
  readonly removed: string;
  readonly path: string;
  readonly root: string;
}

/** Removes a file unless it was used at that time or later; returns whether it is gone. */
async function removeUnused(root: string, path: string, unusedSinceMs = Number.POSITIVE_INFINITY): Promise<boolean> {
  const found = await reading(path, factsOf);
  if (found === null) return true;
  if (found.changedAtMs >= unusedSinceMs) return false;
  // The object loses its name before its time is read again. A writer of the same bytes either renews it before that, and it
  // gets its name back, or no longer finds it, and writes it again.
  const removed = `${path}.${randomBytes(6).toString('hex')}.removed`;
  await rename(path, removed).catch(unlessCode('ENOENT'));
  return settleRemoved({ removed, path, root }, unusedSinceMs);
}

/** Removes a file that has lost its name, or gives it back if the object was used after its removal was decided. */
async function settleRemoved({ removed, path, root }: Removal, unusedSinceMs: number): Promise<boolean> {
  const found = await reading(removed, factsOf);
  const used = found !== null && found.changedAtMs >= unusedSinceMs;
  if (used) await link(removed, path).catch(unlessCode('EEXIST'));
  await rm(removed, { force: true });
  await removeEmptyFolders(root, dirname(path));
  return !used;
}

/** Removes a folder below the root, and those above it, as far as they are empty. */
async function removeEmptyFolders(root: string, folder: string): Promise<void> {
  for (let at = folder; at !== root; at = dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      return;
    }
  }
}

/** Reads something of a path; null if there is nothing. */
async function reading<Value>(path: string, read: (path: string) => Promise<Value>): Promise<Value | null> {
  try {
    return await read(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw storeFailure(path, error);
  }
}

async function writing<Value>(path: string, write: (path: string) => Promise<Value>): Promise<Value> {
  try {
    return await write(path);
  } catch (error) {
    throw storeFailure(path, error);
  }
}

function unlessCode(code: string): (error: unknown) => void {
  return (error) => {
    if (codeOf(error) !== code) throw error;
  };
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);
