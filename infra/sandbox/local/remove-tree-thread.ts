import { randomUUID } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, rmSync, type Stats, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { errorCode } from '../failure.ts';
import type { Removal, RemovalEnd } from './remove-tree.ts';

// The thread of removeTree. See remove-tree.ts.

/** The length from which a directory moves to the top before what is in it: the kernel takes no path above 4096 bytes. */
const longBytes = 2_048;
const slash = Buffer.from('/');
/** The rights that an owner needs to empty a directory. */
const ownerMode = 0o700;

parentPort?.on('message', ({ id, path }: Removal) => {
  parentPort?.postMessage({ id, ...attempt(path) } satisfies RemovalEnd);
});

function attempt(path: string): Pick<RemovalEnd, 'error'> {
  try {
    remove(path);
    return {};
  } catch (error) {
    const code = errorCode(error);
    return { error: { message: String(error), ...(code !== undefined && { code }) } };
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  } catch {
    // It may hold a directory that an agent has closed to its owner, which has to be opened first.
    removeStepByStep(path, Buffer.from(path));
  }
}

/** Removes an entry of the directory `top`. Names are bytes here, since an agent may use names that are not UTF-8. */
function removeStepByStep(top: string, entry: Buffer): void {
  const found = lstatSync(entry);
  if (!found.isDirectory()) unlinkSync(entry);
  else if (entry.length > longBytes) removeStepByStep(top, moveUp(top, entry));
  else {
    openToOwner(entry, found);
    const names = readdirSync(entry, { encoding: 'buffer' });
    for (const name of names) removeStepByStep(top, Buffer.concat([entry, slash, name]));
    rmdirSync(entry);
  }
}

function moveUp(top: string, entry: Buffer): Buffer {
  const moved = Buffer.from(join(top, randomUUID()));
  renameSync(entry, moved);
  return moved;
}

/** Gives a directory's owner the rights to empty it, which an agent may have taken. Root needs none. */
function openToOwner(directory: Buffer, { mode, uid }: Stats): void {
  const own = process.getuid?.();
  if (own !== 0 && own === uid && (mode & ownerMode) !== ownerMode) chmodSync(directory, ownerMode);
}
