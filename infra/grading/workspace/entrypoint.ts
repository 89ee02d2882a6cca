import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { inImage } from '../../sandbox/image-environment.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';

const key = 'entrypoint';
const shownBytes = 2000;
const shownCharacters = 300;

/** Starts the command that runs for as long as a sandbox of the task, as root: services that the task is about, for example. */
export async function startEntrypoint(
  sandbox: Pick<Sandbox, 'start'>,
  { entrypoint, env }: Pick<GradedTask, 'entrypoint' | 'env'>,
  workdir: string,
  signal: AbortSignal,
): Promise<void> {
  if (entrypoint === null) return;
  await sandbox.start({ key, account: 'grader', cwd: workdir, ...inImage(entrypoint), env }, signal);
}

/** Throws SetupFailed if the command has failed by now. One that has ended well has done what it had to do. */
export async function requireEntrypoint(
  sandbox: Pick<Sandbox, 'status' | 'readLog'>,
  { entrypoint }: Pick<GradedTask, 'entrypoint'>,
): Promise<void> {
  if (entrypoint === null) return;
  const status = await sandbox.status(key);
  if (status.state !== 'exited' || status.exitCode === 0) return;
  const { bytes } = await sandbox.readLog(key, { fromByte: 0, maxBytes: shownBytes });
  throw new TemperFailure(
    'SetupFailed',
    `the entry point ${JSON.stringify(entrypoint).slice(0, 200)} of the image ended with exit code ${status.exitCode}: ${String(bytes).trim().slice(-shownCharacters)}`,
  );
}
