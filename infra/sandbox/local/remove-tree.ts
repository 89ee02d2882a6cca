import { randomUUID } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, type Stats, unlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as eventLoop } from 'node:timers/promises';
import { errorCode } from '../failure.ts';

/** The time for which the event loop waits for one slice of a removal. */
const sliceMs = 5;
/** The size from which one call on a file or a directory may take longer than a slice. */
const largeBytes = 2 ** 20;
/** The length from which a directory moves to the top before what is in it: the kernel takes no path above 4096 bytes. */
const longBytes = 2_048;
const slash = Buffer.from('/');

/**
 * Removes a directory with all that is in it, in slices between which the event loop runs. An asynchronous removal sends each
 * small step to another thread and back, which takes several times the CPU time. It still does what is large, and what fails.
 */
export async function removeTree(path: string): Promise<void> {
  let slice = performance.now();

  // Names are bytes here, since an agent may use names that are not UTF-8.
  async function remove(entry: Buffer): Promise<void> {
    if (performance.now() - slice > sliceMs) {
      await eventLoop();
      slice = performance.now();
    }
    const found = lstatSync(entry);
    if (found.isDirectory()) openToOwner(entry, found);
    if (found.size > largeBytes && (await isRemovedThroughThreads(entry))) return;
    if (found.isDirectory() && entry.length > longBytes) await remove(moveUp(entry));
    else if (found.isDirectory()) {
      for (const name of readdirSync(entry, { encoding: 'buffer' })) await remove(Buffer.concat([entry, slash, name]));
      rmdirSync(entry);
    } else unlinkSync(entry);
  }

  function moveUp(entry: Buffer): Buffer {
    const top = Buffer.from(join(path, randomUUID()));
    renameSync(entry, top);
    return top;
  }

  try {
    await remove(Buffer.from(path));
  } catch {
    await removeThroughThreads(path);
  }
}

/** The rights that an owner needs to empty a directory. */
const ownerMode = 0o700;

/** Gives a directory's owner the rights to empty it, which an agent may have taken. Root needs none. */
function openToOwner(directory: Buffer, { mode, uid }: Stats): void {
  const own = process.getuid?.();
  if (own !== 0 && own === uid && (mode & ownerMode) !== ownerMode) chmodSync(directory, ownerMode);
}

/** Removes a large file or directory. Returns false for a directory that holds a closed one, which has to be opened first. */
async function isRemovedThroughThreads(entry: Buffer): Promise<boolean> {
  try {
    await removeThroughThreads(entry);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EACCES') return false;
    throw error;
  }
}

const removeThroughThreads = (path: string | Buffer): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: 5 });
