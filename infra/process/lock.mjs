import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRunning, processIdentity } from './process-identity.mjs';

const POLL_MS = 200;
let attempts = 0;

/**
 * A lock file that names its holder. Node has no flock, so a holder that died is recognised by its process having ended.
 * Answers `{ holder }` when a living process has it, else the lock.
 */
export function tryLock(path) {
  mkdirSync(dirname(path), { recursive: true });
  attempts += 1;
  const draft = `${path}.${process.pid}.${attempts}`;
  writeHolder(draft, processIdentity(process.pid));
  try {
    while (!linked(draft, path)) {
      const holder = readHolder(path);
      if (holder !== undefined && isRunning(holder)) return { holder };
      removeStale(path);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return createLock(path);
}

/** Waits for the lock, runs `work` and releases it. `onWait` is told once who holds it. */
export async function withLock(path, work, { onWait, signal } = {}) {
  let lock = tryLock(path);
  if ('holder' in lock) onWait?.(lock.holder);
  while ('holder' in lock) {
    signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    lock = tryLock(path);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}

function createLock(path) {
  return {
    handOver(pid) {
      const draft = `${path}.${process.pid}.handover`;
      writeHolder(draft, processIdentity(pid));
      renameSync(draft, path);
    },
    release() {
      rmSync(path, { force: true });
    },
  };
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

/** Moves a dead holder's file aside; puts it back when another process was quicker and it is a living one's by now. */
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

function writeHolder(path, holder) {
  writeFileSync(path, `${JSON.stringify(holder)}\n`);
}

function readHolder(path) {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(path, 'utf8'));
    return { pid, startedAt };
  } catch {
    return undefined; // gone in the meantime, or not ours: treated as stale
  }
}
