import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const versionTimeoutMs = 10_000;

/** The version that `temporal --version` prints; undefined if the file is not a Temporal CLI or can't run here. */
export async function cliVersion(executable: string): Promise<string | undefined> {
  const answer = await run(executable, ['--version'], { timeout: versionTimeoutMs }).catch(() => undefined);
  return /^temporal version (\d+\.\d+\.\d+)/.exec(answer?.stdout ?? '')?.[1];
}

/** Whether a version is at least `minimum` by its dotted numbers; a suffix, as in `1.9.0-rc.1`, does not count. */
export function isAtLeast(version: string, minimum: string): boolean {
  const numbers = version.split('.').map((part) => Number.parseInt(part, 10));
  const wanted = minimum.split('.').map((part) => Number.parseInt(part, 10));
  for (const [index, want] of wanted.entries()) {
    const have = numbers[index] ?? 0;
    if (have !== want) return have > want;
  }
  return true;
}
