import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** What is checked without running it. */
const CHECKS = [
  { title: 'types', command: 'tsc', args: ['--noEmit'] },
  { title: 'lint and format', command: 'biome', args: ['check', '--error-on-warnings'] },
] as const;

export interface CheckCounts {
  readonly passed: number;
  /** Their titles: their output is long gone from the screen when the tests end. */
  readonly failed: readonly string[];
}

/** Runs the static checks with their output passed on. */
export async function runChecks(root: string): Promise<CheckCounts> {
  const failed: string[] = [];
  for (const { title, command, args } of CHECKS) {
    const child = spawn(join(root, 'node_modules/.bin', command), args, { cwd: root, stdio: 'inherit' });
    const [code] = await once(child, 'exit');
    console.log(`${code === 0 ? '✔' : '✖'} ${title}`);
    if (code !== 0) failed.push(title);
  }
  return { passed: CHECKS.length - failed.length, failed };
}
