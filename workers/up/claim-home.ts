import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../infra/config.ts';
import { type Lock, tryLock } from '../../infra/process/lock.mjs';
import { isRunning, type ProcessIdentity } from '../../infra/process/process-identity.mjs';
import { readUpFile, removeUpFile } from './up-file.ts';

const POLL_MS = 100;
/** Parts of a supervisor that was killed notice at once, then drain. */
const LEFTOVER_TIMEOUT_MS = 25_000;

export class AlreadyUp extends Error {
  readonly pid: number;

  constructor(home: string, pid: number) {
    super(
      `expected no stack to run on ${home}, but process ${pid} runs one; ` +
        'use that one, stop it with Ctrl-C or `kill`, or name another home with --home',
    );
    this.pid = pid;
  }
}

/** Makes this process the only supervisor of a home. A lock whose holder was killed counts for nothing. */
export async function claimHome(config: Config, progress: (line: string) => void, signal: AbortSignal): Promise<Lock> {
  await mkdir(config.home, { recursive: true, mode: 0o755 });
  const lock = tryLock(config.paths.lock);
  if ('holder' in lock) throw new AlreadyUp(config.home, lock.holder.pid);
  try {
    await endLeftovers(config, progress, signal);
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

/** Waits until the parts of a killed supervisor are gone; who doesn't go by itself is killed. */
async function endLeftovers(config: Config, progress: (line: string) => void, signal: AbortSignal): Promise<void> {
  const known = (await readUpFile(config.paths.up))?.parts.flatMap((part) => part.process ?? []) ?? [];
  const deadline = performance.now() + LEFTOVER_TIMEOUT_MS;
  let left = known.filter(isRunning);
  if (left.length > 0) progress(`waiting for ${left.length} processes of a stack that was killed`);
  while (left.length > 0) {
    if (performance.now() > deadline) killAll(left);
    await sleep(POLL_MS, undefined, { signal });
    left = left.filter(isRunning);
  }
  await removeUpFile(config.paths.up);
}

function killAll(processes: readonly ProcessIdentity[]): void {
  for (const one of processes) {
    try {
      process.kill(one.pid, 'SIGKILL');
    } catch {
      // It ended in between, which is what we want.
    }
  }
}
