import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRunning, processIdentity } from '../process/process-identity.mjs';

// The lock of the set-up alone, which runs before any npm package is installed: Node itself has no file locks. All other code uses
// the kernel's locks, in infra/process/file-lock.ts.

const pollMs = 200;
let drafts = 0;

/**
 * Takes a lock file that names its holder, or returns `{ holder }` if a living process has it. The lock of a process that has
 * ended is void.
 */
export function tryLock(path) {
  mkdirSync(dirname(path), { recursive: true });
  drafts += 1;
  const draft = `${path}.${process.pid}.${drafts}`;
  writeFileSync(draft, `${JSON.stringify(processIdentity(process.pid))}\n`);
  try {
    while (!linked(draft, path)) {
      const holder = readHolder(path);
      if (holder !== undefined && isRunning(holder)) return { holder };
      removeStale(path);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return { release: () => rmSync(path, { force: true }) };
}

/** Waits for the lock, runs `work` and releases the lock. `onWait` is called once with the process that has it. */
export async function withLock(path, work, { onWait } = {}) {
  let lock = tryLock(path);
  if ('holder' in lock) onWait?.(lock.holder);
  while ('holder' in lock) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    lock = tryLock(path);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}

function linked(draft, path) {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the file of a dead holder aside, and moves it back if a living process has locked it meanwhile. */
function removeStale(path) {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  const moved = readHolder(aside);
  if (moved !== undefined && isRunning(moved)) linked(aside, path);
  rmSync(aside, { force: true });
}

/** Reads the holder; undefined for a file that is gone or not a valid lock, which counts as stale. */
function readHolder(path) {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(path, 'utf8'));
    return { pid, startedAt };
  } catch {
    return undefined;
  }
}
