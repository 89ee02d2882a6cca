import { basename } from 'node:path/posix';

/** The command that Harbor runs in a container: an entry point of an image gets it as its arguments. */
const waiting = ['sh', '-c', 'sleep infinity'] as const;
const shells = new Set(['sh', 'bash', 'dash', 'ash', 'zsh']);

/**
 * Returns the command that runs for as long as a sandbox of the task, or null if there is none: the one that the task names, or
 * the entry point of its Dockerfile. One that is only a shell is for people who start the image by hand, and is left out.
 */
export function entrypointOf(
  named: readonly string[] | undefined,
  ofDockerfile: readonly string[] | null,
): readonly [string, ...string[]] | null {
  const [program, ...args] = named ?? ofDockerfile ?? [];
  if (program === undefined) return null;
  if (named !== undefined) return [program, ...args];
  if (shells.has(basename(program)) && args.every((one) => one.startsWith('-'))) return null;
  const isText = program === '/bin/sh' && args[0] === '-c' && args.length === 2;
  return isText ? [program, ...args] : [program, ...args, ...waiting];
}
