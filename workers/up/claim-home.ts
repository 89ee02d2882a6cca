import { setTimeout as sleep } from 'node:timers/promises';
import { makeDirectory } from '../../infra/process/durable-directory.ts';
import { type FileLock, tryLock } from '../../infra/process/file-lock.ts';
import { isRunning, type ProcessIdentity } from '../../infra/process/process-identity.mjs';
import type { Config } from '../../infra/settings/config.ts';
import { isUp, readUpFile, removeUpFile } from './up-file.ts';

const pollMs = 100;
/** The time that the parts of a killed supervisor get to end: they notice at once that it was killed, and drain. */
const leftoverTimeoutMs = 25_000;

/** Another process is the supervisor of the home. */
export class AlreadyUp extends Error {
  readonly pid: number | null;

  constructor(home: string, pid: number | null) {
    super(
      `a stack already runs on ${home}, started by ${pid === null ? 'another process' : `process ${pid}`}; ` +
        'use it, stop it with `temper down`, or name another home with --home',
    );
    this.pid = pid;
  }
}

/**
 * Makes this process the only supervisor of a home. The lock of a process that was killed does not count, and a stack that is
 * stopping is waited for.
 */
export async function claimHome(
  config: Config,
  progress: (line: string) => void,
  signal: AbortSignal,
): Promise<FileLock> {
  await makeDirectory(config.home, 0o755);
  let lock = await tryLock(config.paths.lock);
  for (let waits = 0; 'holder' in lock; waits += 1) {
    const up = await readUpFile(config.paths.up);
    if (up !== null && isUp(up) && up.state === 'stopping') {
      if (waits === 0) progress(`waiting for the stack of process ${up.supervisor.pid} to stop`);
    } else if (up !== null || waits === 0) {
      // A stack that was waited for and has no file any more is about to release the lock.
      throw new AlreadyUp(config.home, lock.holder.pid);
    }
    await sleep(pollMs, undefined, { signal });
    lock = await tryLock(config.paths.lock);
  }
  try {
    await endLeftovers(config, progress, signal);
  } catch (error) {
    await lock.release();
    throw error;
  }
  return lock;
}

/** Waits until the parts of a killed supervisor have ended, and kills those that don't end in time. */
async function endLeftovers(config: Config, progress: (line: string) => void, signal: AbortSignal): Promise<void> {
  const known = (await readUpFile(config.paths.up))?.parts.flatMap((part) => part.process ?? []) ?? [];
  const deadline = performance.now() + leftoverTimeoutMs;
  let left = known.filter(isRunning);
  if (left.length > 0) progress(`waiting until ${left.length} processes of a killed stack have ended`);
  while (left.length > 0) {
    if (performance.now() > deadline) killAll(left);
    await sleep(pollMs, undefined, { signal });
    left = left.filter(isRunning);
  }
  await removeUpFile(config.paths.up);
}

function killAll(processes: readonly ProcessIdentity[]): void {
  for (const one of processes) {
    try {
      process.kill(one.pid, 'SIGKILL');
    } catch {
      // It has ended in the meantime.
    }
  }
}
