import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CONCURRENCY = 2;
/** One test; whatever hangs longer is a failure with a name. */
const TEST_TIMEOUT_MS = 15 * 60_000;

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
}

/** Runs the files under node's test runner; its output passes through. Undefined counts: the runner itself died. */
export async function runNodeTests(
  root: string,
  files: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<TestCounts | undefined> {
  if (files.length === 0) return undefined; // without a file, node would choose some itself
  const scratch = await mkdtemp(join(tmpdir(), 'temper-test-run-'));
  const countsFile = join(scratch, 'counts.json');
  try {
    const flags = [
      '--test',
      `--test-concurrency=${CONCURRENCY}`,
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...[`--test-reporter=${join(root, 'test/runner/reporter.mjs')}`, `--test-reporter-destination=${countsFile}`],
    ];
    const child = spawn(process.execPath, [...flags, ...files], { cwd: root, env: { ...env }, stdio: 'inherit' });
    await once(child, 'exit');
    return parseCounts(await readFile(countsFile, 'utf8').catch(() => ''));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function parseCounts(text: string): TestCounts | undefined {
  if (text === '') return undefined;
  const { passed, failed, cancelled, skipped, todo, skippedTitles } = JSON.parse(text);
  const titles: string[] = skippedTitles;
  return {
    passed,
    failed: failed + cancelled,
    skipped: titles.length === skipped + todo ? titles : Array(skipped + todo).fill('?'),
  };
}
