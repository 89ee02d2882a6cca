import { dirname, join } from 'node:path/posix';
import { SandboxFailure } from '../failure.ts';
import type { SandboxSpec } from '../sandbox.ts';
import * as scripts from './scripts.ts';
import type { Shell } from './shell.ts';

const alreadyOwned = 3;

/**
 * The directory to which the image's own workspace is copied before it replaces the working directory. It is a sibling, because
 * only its owner may move a directory below another parent.
 */
export const adoptDirectoryOf = (workdir: string): string => join(dirname(workdir), '.adopted');

/**
 * Gives the image's own working directory to the agent: copies it as the agent, then replaces it by the copy, since no account
 * inside may change owners. Repeatable.
 */
export async function adoptWorkdir(
  shell: Shell,
  { name, workdir }: Pick<SandboxSpec, 'name' | 'workdir'>,
  signal: AbortSignal,
): Promise<void> {
  const args = [workdir, adoptDirectoryOf(workdir)];
  const copied = await shell.run({ role: 'agent', text: scripts.adoptCopy, args }, signal);
  if (copied.exitCode === alreadyOwned) return;
  const swapped =
    copied.exitCode === 0 ? await shell.run({ role: 'grader', text: scripts.adoptSwap, args }, signal) : copied;
  if (swapped.exitCode === 0) return;
  const text = `could not give ${workdir} of sandbox ${name} to the agent; make it readable for all in the image`;
  throw new SandboxFailure('UnsupportedTask', text, { evidence: String(swapped.stderr).trim().slice(0, 500) });
}
