import { inImage } from '../sandbox/image-environment.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { GradedTask } from './task.ts';

/** The time that a reference solution gets before tests that are run to learn about the host. */
const solutionMs = 120_000;

/**
 * Applies the reference solution in a fresh sandbox, and returns whether it had the time to. How it ends does not matter: the tests say
 * whether it works.
 */
export async function solve(
  sandbox: Sandbox,
  { solution, env, solutionEnv }: Pick<GradedTask, 'solution' | 'env' | 'solutionEnv'>,
  { workdir, path }: { readonly workdir: string; readonly path: string | null },
  signal: AbortSignal,
): Promise<boolean> {
  await sandbox.putFiles({ tree: solution, at: '/solution', owner: 'agent' }, signal);
  const { timedOut } = await sandbox.exec(
    {
      account: 'agent',
      cwd: workdir,
      ...inImage(['bash', '/solution/solve.sh']),
      env: { ...env, ...solutionEnv, ...(path !== null && { PATH: path }) },
      timeoutMs: solutionMs,
      maxOutputBytes: 4096,
    },
    signal,
  );
  return !timedOut;
}
