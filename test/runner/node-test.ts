import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { needsOf } from './need.ts';

/** The limit of one test: a test that hangs longer is a failure with a name. */
const testTimeoutMs = 15 * 60_000;
const slowestShown = 10;

export interface TestRun {
  readonly root: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The number of files that run at the same time. */
  readonly concurrency: number;
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** The titles of skipped tests. */
  readonly skipped: readonly string[];
  /** The slowest files, the slowest first. */
  readonly slowest: readonly { readonly file: string; readonly seconds: number }[];
}

const reported = z.object({
  passed: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  skipped: z.int(),
  todo: z.int(),
  skippedTitles: z.array(z.string()),
  durations: z.array(z.object({ file: z.string(), ms: z.number() })),
});

/**
 * Runs the files under node's test runner, and then those that need the machine for themselves; its output passes through.
 * Returns undefined when the runner itself died, or when there is no file.
 */
export async function runNodeTests(run: TestRun): Promise<TestCounts | undefined> {
  const needsMachine = (file: string): boolean => needsOf(file).includes('alone');
  const phases = [
    { ...run, files: run.files.filter((file) => !needsMachine(file)) },
    { ...run, files: run.files.filter(needsMachine), concurrency: 1 },
  ].filter(({ files }) => files.length > 0); // without a file, node would choose some itself
  let total: TestCounts | undefined;
  for (const phase of phases) {
    const counts = await runPhase(phase);
    if (counts === undefined) return undefined;
    total = total === undefined ? counts : sum(total, counts);
  }
  return total;
}

function sum(one: TestCounts, other: TestCounts): TestCounts {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: [...one.skipped, ...other.skipped],
    slowest: [...one.slowest, ...other.slowest].sort((a, b) => b.seconds - a.seconds).slice(0, slowestShown),
  };
}

async function runPhase({ root, files, env, concurrency }: TestRun): Promise<TestCounts | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'temper-test-run-'));
  const countsFile = join(scratch, 'counts.json');
  try {
    const flags = [
      '--test',
      `--test-concurrency=${concurrency}`,
      `--test-timeout=${testTimeoutMs}`,
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      `--test-reporter=${join(root, 'test/runner/reporter.mjs')}`,
      `--test-reporter-destination=${countsFile}`,
    ];
    const child = spawn(process.execPath, [...flags, ...files], {
      cwd: root,
      // Each file is a process, and most load the same modules: compiled once, they cost half.
      env: { ...env, NODE_COMPILE_CACHE: join(scratch, 'compiled') },
      stdio: 'inherit',
    });
    await once(child, 'exit');
    return parseCounts(root, await readFile(countsFile, 'utf8').catch(() => ''));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function parseCounts(root: string, text: string): TestCounts | undefined {
  if (text === '') return undefined;
  const { passed, failed, cancelled, skipped, todo, skippedTitles, durations } = reported.parse(JSON.parse(text));
  return {
    passed,
    failed: failed + cancelled,
    skipped: skippedTitles.length === skipped + todo ? skippedTitles : Array(skipped + todo).fill('?'),
    slowest: durations
      .sort((one, other) => other.ms - one.ms)
      .slice(0, slowestShown)
      .map(({ file, ms }) => ({
        file: file.startsWith(root) ? file.slice(root.length) : file,
        seconds: Math.round(ms / 1000),
      })),
  };
}
