import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VERSION_TIMEOUT_MS = 10_000;

/** What `temporal --version` says of itself; undefined when it is no Temporal CLI or can't run here. */
export async function cliVersion(executable: string): Promise<string | undefined> {
  const answer = await run(executable, ['--version'], { timeout: VERSION_TIMEOUT_MS }).catch(() => undefined);
  return /^temporal version (\d+\.\d+\.\d+)/.exec(answer?.stdout ?? '')?.[1];
}

/** Compares the dotted numbers; anything after them, as in `1.9.0-rc.1`, does not count. */
export function isAtLeast(version: string, minimum: string): boolean {
  const numbers = version.split('.').map((part) => Number.parseInt(part, 10));
  const wanted = minimum.split('.').map((part) => Number.parseInt(part, 10));
  for (const [index, want] of wanted.entries()) {
    const have = numbers[index] ?? 0;
    if (have !== want) return have > want;
  }
  return true;
}
