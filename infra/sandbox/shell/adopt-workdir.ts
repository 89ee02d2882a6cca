import { dirname, join } from 'node:path/posix';
import { SandboxFailure } from '../failure.ts';
import type { SandboxSpec } from '../sandbox.ts';
import * as scripts from './scripts.ts';
import type { Shell } from './shell.ts';

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
  if (copied.exitCode === scripts.notAdopted.owned) return;
  const swapped =
    copied.exitCode === 0 ? await shell.run({ role: 'grader', text: scripts.adoptSwap, args }, signal) : copied;
  if (swapped.exitCode === 0) return;
  const evidence = `exit code ${swapped.exitCode}: ${String(swapped.stderr).trim().slice(0, 500)}`;
  const text = `could not give ${workdir} of sandbox ${name} to the agent${reasonOf(swapped.exitCode, workdir)}`;
  throw new SandboxFailure('UnsupportedTask', text, { evidence });
}

/** Says why the agent can't be given a workdir, and what its author can do. */
function reasonOf(exitCode: number, workdir: string): string {
  const { link, mount, otherOwner, closed, closedAbove } = scripts.notAdopted;
  const orRoot = 'or let the agent be root ([agent] user = "root" in task.toml)';
  if (exitCode === link)
    return ', since it is a symbolic link; name the directory that it leads to: environment.workdir in task.toml';
  if (exitCode === mount)
    return `, since it is a volume of the image; make the image without VOLUME ${workdir}, ${orRoot}`;
  if (exitCode === otherOwner)
    return `, since it, a directory in it or the one above belongs to another account; add RUN chown -R root:root ${dirname(workdir) === '/' ? workdir : `${workdir} && chown root ${dirname(workdir)}`} as root to the image, ${orRoot}`;
  if (exitCode === closed)
    return `, since not every account may read it; add RUN chmod -R a+rX ${workdir} as root to the image, ${orRoot}`;
  if (exitCode === closedAbove)
    return `, since a directory above it is closed to other accounts, as /root is; move the work to a directory such as /app, ${orRoot}`;
  return `; check that its files can be copied and removed in the image, ${orRoot}`;
}
