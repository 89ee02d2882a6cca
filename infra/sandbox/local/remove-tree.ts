import { randomUUID } from 'node:crypto';
import { lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as eventLoop } from 'node:timers/promises';

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
    if (found.size > largeBytes) await removeThroughThreads(entry);
    else if (found.isDirectory() && entry.length > longBytes) await remove(moveUp(entry));
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

const removeThroughThreads = (path: string | Buffer): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: 5 });
