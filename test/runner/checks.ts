import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The checks that run no test; `npm run check` runs the same. */
const checks = [
  { title: 'types', command: 'node_modules/.bin/tsc', args: ['--noEmit'] },
  { title: 'lint and format', command: 'node_modules/.bin/biome', args: ['check', '--error-on-warnings'] },
  { title: 'prose', command: process.execPath, args: ['test/runner/prose.ts'] },
] as const;

export interface CheckCounts {
  readonly passed: number;
  /** The titles of the checks that failed: their output has scrolled away when the tests end. */
  readonly failed: readonly string[];
  readonly seconds: number;
}

/** Runs the static checks with their output passed on. */
export async function runChecks(root: string): Promise<CheckCounts> {
  const began = performance.now();
  const failed: string[] = [];
  for (const { title, command, args } of checks) {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit' });
    const [code] = await once(child, 'exit');
    console.log(`${code === 0 ? '✔' : '✖'} ${title}`);
    if (code !== 0) failed.push(title);
  }
  const seconds = Math.round((performance.now() - began) / 1000);
  return { passed: checks.length - failed.length, failed, seconds };
}
