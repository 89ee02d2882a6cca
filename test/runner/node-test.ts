import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { compiledDirectory } from '../../infra/process/cache.mjs';
import type { Drive } from './drive.ts';
import { needsOf } from './need.ts';

/** The limit of one test in minutes: a test that hangs longer is a failure with a name. By hand, TEMPER_TEST_MINUTES replaces it. */
const testMinutes = 15;
const slowestShown = 10;

export interface TestRun {
  readonly root: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The number of files that run at the same time. */
  readonly concurrency: number;
  /** Called with each file that has ended. */
  readonly onEnd?: (file: string) => void;
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** The titles of skipped tests. */
  readonly skipped: readonly string[];
  readonly failures: readonly z.infer<typeof failure>[];
  /** The slowest files, the slowest first. */
  readonly slowest: readonly { readonly file: string; readonly seconds: number }[];
  /** The seconds of each phase. */
  readonly phases: readonly { readonly title: string; readonly seconds: number }[];
}

/** A failed test, where it stands, and the beginning of its error. */
const failure = z.object({ title: z.string(), place: z.string(), error: z.string() });

const reported = z.object({
  failures: z.array(failure),
  passed: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  skipped: z.int(),
  todo: z.int(),
  skippedTitles: z.array(z.string()),
  durations: z.array(z.object({ file: z.string(), ms: z.number() })),
});

/**
 * Runs the files under node's test runner: the large ones one by one beside the others, then those that need the machine for
 * themselves. Small ones share processes. The output passes through. Returns undefined when the runner itself died, or
 * when there is no file.
 */
export async function runNodeTests(run: TestRun): Promise<TestCounts | undefined> {
  const all = run.files.map((file) => ({ file, needs: needsOf(file) }));
  const lanes = Object.groupBy(all, ({ needs }) => laneOf(needs));
  const { large = [], alone = [], others = [] } = lanes;
  const phases = [
    [
      { title: 'large tests', processes: apart(large.toSorted(byPlace)), concurrency: 1 },
      { title: 'tests', processes: spread(others), concurrency: run.concurrency },
    ],
    [{ title: 'tests alone', processes: apart(alone), concurrency: 1 }],
  ];
  let total: TestCounts | undefined;
  for (const phase of phases) {
    const counts = await Promise.all(
      phase
        .filter(({ processes }) => processes.length > 0) // without a file, node would choose some itself
        .map(({ title, ...lane }) => timed(title, () => runLane({ ...run, ...lane }))),
    );
    for (const one of counts) {
      if (one === undefined) return undefined;
      total = total === undefined ? one : { ...sum(total, one), phases: [...total.phases, ...one.phases] };
    }
  }
  return total;
}

/** The files of one phase, or of one of two lanes that it has. */
interface Lane extends Omit<TestRun, 'files'> {
  /** The files of each process, in the order of their starts. */
  readonly processes: readonly (readonly string[])[];
}

async function timed(title: string, work: () => Promise<PhaseCounts | undefined>): Promise<TestCounts | undefined> {
  const startedAt = performance.now();
  const counts = await work();
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  return counts && { ...counts, phases: [{ title, seconds }] };
}

interface FileWithNeeds {
  readonly file: string;
  readonly needs: readonly string[];
}

/**
 * Orders the large files: those on the shared cluster come first, since its parts use the processors also at rest; a file
 * with `alone` has a cluster of its own, for which the shared one ends.
 */
const byPlace = (one: FileWithNeeds, other: FileWithNeeds): number => placeOf(one) - placeOf(other);

const placeOf = ({ needs }: FileWithNeeds): number =>
  !needs.includes('kubernetes') ? 2 : needs.includes('alone') ? 1 : 0;

/** Gives each file a process of its own. */
const apart = (files: readonly FileWithNeeds[]): string[][] => files.map(({ file }) => [file]);

/** Distributes the files evenly over this number of processes. */
const distribute = (files: readonly FileWithNeeds[], processes: number): string[][] =>
  Object.values(Object.groupBy(apart(files), (_, index) => index % processes)).map((some = []) => some.flat());

const largeNeeds: readonly string[] = ['kubernetes', 'machines', 'compose'];

/** Whole stacks with containers are large, too: they take minutes, in which they mostly wait. */
const isLarge = (needs: readonly string[]): boolean =>
  needs.some((need) => largeNeeds.includes(need)) || (needs.includes('docker') && needs.includes('process'));

function laneOf(needs: readonly string[]): 'large' | 'alone' | 'others' {
  if (isLarge(needs)) return 'large';
  return needs.includes('alone') ? 'alone' : 'others';
}

/**
 * Puts the processes in the order of their starts: whole stacks, which keep the cores busy, spread evenly among files that mostly
 * wait. Processes of several files take minutes, so that none of them starts in the second half. The files that need nothing, which
 * take seconds and never wait, come instead: some of them among the last of the others, and the rest at the end.
 */
function spread(files: readonly FileWithNeeds[]): string[][] {
  const {
    plain = [],
    stacks = [],
    small = [],
    docker = [],
    waiting = [],
  } = Object.groupBy(files, ({ needs }) => kindOf(needs));
  const placed = [
    ...placesOf(apart(stacks)),
    ...placesOf(shared(small, filesPerProcess), 0, 0.5),
    ...placesOf(shared(docker, dockerFilesPerProcess), 0, 0.5),
    ...placesOf(apart(waiting)),
    ...placesOf(shared(plain, plainFilesPerProcess), 0.7, 1.2),
  ];
  return placed.sort((one, other) => one.place - other.place).map(({ process }) => process);
}

/** The number of files that share a process. Each process takes about a second of CPU time to load the product and the SDK. */
const filesPerProcess = 8;
/** The same for files with containers, which last longer. */
const dockerFilesPerProcess = 4;
/** The same for files that need nothing, of which most take less than a second. */
const plainFilesPerProcess = 30;

const shared = (files: readonly FileWithNeeds[], each: number): string[][] =>
  distribute(files, Math.ceil(files.length / each));

function kindOf(needs: readonly string[]): 'plain' | 'stacks' | 'small' | 'docker' | 'waiting' {
  if (needs.length === 0) return 'plain';
  if (needs.includes('process')) return 'stacks';
  const others = needs.filter((need) => need !== 'temporal' && need !== 'sandbox');
  if (others.length === 0) return 'small';
  return others.every((need) => need === 'docker') ? 'docker' : 'waiting';
}

/** Spreads the processes evenly between two places. */
const placesOf = (processes: readonly string[][], first = 0, last = 1) =>
  processes.map((process, index) => ({ process, place: first + ((last - first) * (index + 0.5)) / processes.length }));

function sum(one: PhaseCounts, other: PhaseCounts): PhaseCounts {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: [...one.skipped, ...other.skipped],
    failures: [...one.failures, ...other.failures],
    slowest: [...one.slowest, ...other.slowest].sort((a, b) => b.seconds - a.seconds).slice(0, slowestShown),
  };
}

type PhaseCounts = Omit<TestCounts, 'phases'>;

async function runLane(lane: Lane): Promise<PhaseCounts | undefined> {
  const { root, processes, env, concurrency, onEnd } = lane;
  const scratch = await mkdtemp(join(tmpdir(), 'temper-test-run-'));
  const countsFile = join(scratch, 'counts.json');
  try {
    const timeoutMs = 60_000 * Number(env.TEMPER_TEST_MINUTES ?? testMinutes);
    const drive: Drive = { processes, concurrency, timeoutMs, countsFile };
    // The files inherit the flag, which limits each of their tests.
    const flags = [`--test-timeout=${timeoutMs}`, join(root, 'test/runner/drive.ts')];
    const child = spawn(process.execPath, [...flags, JSON.stringify(drive)], {
      cwd: root,
      // Most files are processes that load the same modules: compiled once, they cost half. A stack's parts share them.
      env: { NODE_COMPILE_CACHE: compiledDirectory(env), ...env },
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    });
    child.on('message', (file: string) => onEnd?.(relative(root, file)));
    await once(child, 'exit');
    return parseCounts(root, await readFile(countsFile, 'utf8').catch(() => ''));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function parseCounts(root: string, text: string): PhaseCounts | undefined {
  if (text === '') return undefined;
  const { passed, failed, cancelled, skipped, todo, skippedTitles, durations, failures } = reported.parse(
    JSON.parse(text),
  );
  return {
    passed,
    failures,
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
