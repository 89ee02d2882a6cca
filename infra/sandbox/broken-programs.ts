import { type FailureType, TemperFailure } from '../../workflows/contracts/failures.ts';
import { FileRefused, SandboxFailure } from './failure.ts';
import type { Sandbox } from './sandbox.ts';

/** Failures that broken programs in a sandbox may have caused. */
const suspect: ReadonlySet<FailureType> = new Set(['SandboxLost', 'SetupFailed', 'UnsupportedTask', 'Internal']);
const namedPaths = 5;

/** Whether broken programs in a sandbox may have caused a failure. Without tar, for example, it takes no files. */
const isSuspect = (error: unknown): error is TemperFailure | FileRefused =>
  error instanceof FileRefused ||
  (error instanceof TemperFailure && suspect.has(error.type) && !(error instanceof SandboxFailure && error.loss));

/**
 * Does work in a sandbox that an agent has left, or that holds all that it changed. If that fails although the sandbox
 * runs, and programs of its image were replaced or removed, as only an agent that is root can do, or the agent has filled the
 * disk beyond its limit, the agent counts as having ended its sandbox, which is scored.
 */
export async function blamingBrokenPrograms<Result>(
  sandbox: Pick<Sandbox, 'name' | 'changes' | 'diskUsage'>,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TemperFailure && error.type === 'DiskFull') throw (await filledDisk(sandbox, error)) ?? error;
    if (!isSuspect(error)) throw error;
    const changed = (await sandbox.changes?.changedPrograms()) ?? [];
    if (changed.length === 0) throw error;
    const named = `${changed.slice(0, namedPaths).join(', ')}${changed.length > namedPaths ? ', …' : ''}`;
    throw new SandboxFailure('SandboxLost', `sandbox ${sandbox.name} is unusable since its agent changed ${named}`, {
      cause: error,
      evidence: error.message,
      loss: 'ended-inside',
    });
  }
}

/** The share of a sandbox's disk above which it is full. Its limit is a disk of its own where a provider gives it one. */
const fullShare = 0.95;

/** Returns the failure of a sandbox whose own disk is full; undefined if the disk of its host is. */
async function filledDisk(
  sandbox: Pick<Sandbox, 'name' | 'diskUsage'>,
  cause: TemperFailure,
): Promise<SandboxFailure | undefined> {
  const { usedMb, limitMb } = await sandbox.diskUsage();
  if (usedMb < limitMb * fullShare) return undefined;
  const text = `sandbox ${sandbox.name} is unusable since its agent has written ${Math.round(usedMb)} MB, and its limit is ${limitMb} MB`;
  return new SandboxFailure('SandboxLost', text, { cause, evidence: cause.message, loss: 'out-of-disk' });
}
