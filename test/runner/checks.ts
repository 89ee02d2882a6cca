import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The checks that run no test. */
const checks = [
  { title: 'types', command: 'tsc', args: ['--noEmit'] },
  { title: 'lint and format', command: 'biome', args: ['check', '--error-on-warnings'] },
] as const;

export interface CheckCounts {
  readonly passed: number;
  /** The titles of the checks that failed: their output has scrolled away when the tests end. */
  readonly failed: readonly string[];
}

/** Runs the static checks with their output passed on. */
export async function runChecks(root: string): Promise<CheckCounts> {
  const failed: string[] = [];
  for (const { title, command, args } of checks) {
    const child = spawn(join(root, 'node_modules/.bin', command), args, { cwd: root, stdio: 'inherit' });
    const [code] = await once(child, 'exit');
    console.log(`${code === 0 ? '✔' : '✖'} ${title}`);
    if (code !== 0) failed.push(title);
  }
  return { passed: checks.length - failed.length, failed };
}
