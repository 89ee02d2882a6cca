import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import type { Drive } from './drive.ts';
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
  /** The seconds of each phase. */
  readonly phases: readonly { readonly title: string; readonly seconds: number }[];
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
 * Runs the files under node's test runner, the longest first, and then those that need the machine for themselves; its output
 * passes through. Returns undefined when the runner itself died, or when there is no file.
 */
export async function runNodeTests(run: TestRun): Promise<TestCounts | undefined> {
  const needsMachine = (file: string): boolean => needsOf(file).includes('alone');
  const phases = [
    { ...run, title: 'tests', files: longestFirst(run.files.filter((file) => !needsMachine(file))) },
    { ...run, title: 'tests alone', files: run.files.filter(needsMachine), concurrency: 1 },
  ].filter(({ files }) => files.length > 0); // without a file, node would choose some itself
  let total: TestCounts | undefined;
  for (const phase of phases) {
    const startedAt = performance.now();
    const run = await runPhase(phase);
    if (run === undefined) return undefined;
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const counts = { ...run, phases: [{ title: phase.title, seconds }] };
    total = total === undefined ? counts : sum(total, counts);
  }
  return total;
}

/** The needs of files that take long, the longest first: whole stacks, then servers and sandboxes. None of them is to start last. */
const needsByLength = [['process'], ['kubernetes', 'temporal', 'docker', 'sandbox', 's3', 'postgres', 'bubblewrap']];

function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string): number => {
    const needs = needsOf(file);
    const found = needsByLength.findIndex((words) => words.some((word) => needs.includes(word)));
    return found < 0 ? needsByLength.length : found;
  };
  return files.toSorted((one, other) => rank(one) - rank(other));
}

function sum(one: TestCounts, other: TestCounts): TestCounts {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: [...one.skipped, ...other.skipped],
    slowest: [...one.slowest, ...other.slowest].sort((a, b) => b.seconds - a.seconds).slice(0, slowestShown),
    phases: [...one.phases, ...other.phases],
  };
}

type PhaseCounts = Omit<TestCounts, 'phases'>;

async function runPhase({ root, files, env, concurrency }: TestRun): Promise<PhaseCounts | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'temper-test-run-'));
  const countsFile = join(scratch, 'counts.json');
  try {
    const drive: Drive = { files, concurrency, timeoutMs: testTimeoutMs, countsFile };
    // The files inherit the flag, which limits each of their tests.
    const flags = [`--test-timeout=${testTimeoutMs}`, join(root, 'test/runner/drive.ts')];
    const child = spawn(process.execPath, [...flags, JSON.stringify(drive)], {
      cwd: root,
      // Each file is a process, and most load the same modules: compiled once, they cost half. A stack's parts share them.
      env: { NODE_COMPILE_CACHE: join(cacheDirectory(env), 'compiled'), ...env },
      stdio: 'inherit',
    });
    await once(child, 'exit');
    return parseCounts(root, await readFile(countsFile, 'utf8').catch(() => ''));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function parseCounts(root: string, text: string): PhaseCounts | undefined {
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
