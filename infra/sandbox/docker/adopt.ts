/** An image that brings its own working directory: the agent must own it, and nobody inside may change owners. */
import { SandboxFailure } from '../failure.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { adoptDirectoryOf } from './container.ts';
import type { Inside } from './inside.ts';
import * as scripts from './scripts.ts';

const alreadyOwned = 3;

/** Copies the directory as the agent, then puts the copy in its place. Repeatable. */
export async function adoptWorkdir(inside: Inside, { name, workdir }: SandboxSpec, signal: AbortSignal): Promise<void> {
  const paths = [workdir, adoptDirectoryOf(workdir)];
  const copied = await inside.run({ role: 'agent', text: scripts.adoptCopy, args: paths }, signal);
  if (copied.exitCode === alreadyOwned) return;
  const swapped =
    copied.exitCode === 0 ? await inside.run({ role: 'grader', text: scripts.adoptSwap, args: paths }, signal) : copied;
  if (swapped.exitCode === 0) return;
  const text = `expected to give ${workdir} of sandbox ${name} to the agent; make it readable for all in the image`;
  throw new SandboxFailure('UnsupportedTask', text, { evidence: String(swapped.stderr).trim().slice(0, 500) });
}
