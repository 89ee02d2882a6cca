/**
 * Measures the time and the memory of `temper tasks check` as a user types it, on sets with few and with many rows, and on
 * task directories.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { note, print, printJson, table } from '../../workers/cli/text/output.ts';
import { sweRow } from '../helpers/tasks/data-set-fixture.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

interface Options {
  readonly rows: number;
  readonly many: number;
  readonly directories: number;
  readonly json?: true;
}

interface Figures {
  readonly set: string;
  readonly tasks: number;
  readonly usable: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

/** The size of a row: its problem statement and its patch are as long as those of published rows. */
const rowBytes = 6_000;
const program = join(import.meta.dirname, '../../workers/cli.ts');
/** Makes the measured process print what it took, as its last line. */
const meter = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => { const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage(); process.stderr.write('\\n' + JSON.stringify({ peakMb: maxRSS / 1024, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 })); })",
)}`;

await new Command('npm run bench:tasks --')
  .description('Measures how long `temper tasks check` takes on sets of different sizes, and its memory.')
  .option('--rows <n>', 'rows of the smaller data set', wholeNumber(1, 10_000_000), 5_000)
  .option('--many <n>', 'rows of the larger data set', wholeNumber(1, 10_000_000), 100_000)
  .option('--directories <n>', 'task directories', wholeNumber(1, 1_000_000), 5_000)
  .option('--json', 'one JSON object on stdout')
  .action(main)
  .parseAsync();

async function main({ rows, many, directories, json }: Options): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  try {
    const figures: Figures[] = [];
    for (const count of [rows, many]) {
      note(`writing ${count} rows`);
      const file = join(home, `rows-${count}.jsonl`);
      await writeRows(file, count);
      figures.push(await check(home, `${count} rows`, `swe-bench:${file}`));
      await rm(file);
    }
    note(`writing ${directories} directories`);
    for (let number = 0; number < directories; number += 1) {
      await writeHarborTask(join(home, 'tasks'), `task-${number}`, {});
    }
    figures.push(await check(home, `${directories} directories`, join(home, 'tasks')));
    if (json) printJson(figures);
    else print(reportOf(figures));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function writeRows(file: string, count: number): Promise<void> {
  const out = createWriteStream(file);
  for (let number = 0; number < count; number += 1) {
    const row = {
      ...sweRow,
      instance_id: `pallets__flask-${number}`,
      problem_statement: `${number} ${'It fails with an error. '.repeat(rowBytes / 24)}`,
      // One row in a hundred is broken, in one of two ways.
      ...(number % 100 === 0 && { FAIL_TO_PASS: '[]' }),
      ...(number % 100 === 50 && { repo: number }),
    };
    if (!out.write(`${JSON.stringify(row)}\n`)) await once(out, 'drain');
  }
  await new Promise<void>((resolve) => out.end(() => resolve()));
}

async function check(home: string, set: string, address: string): Promise<Figures> {
  note(`checking ${set}`);
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['--import', meter, program, 'tasks', 'check', address, '--json'], {
    env: { ...process.env, TEMPER_HOME: join(home, 'stack') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const seconds = (performance.now() - startedAt) / 1000;
  const { tasks, usable } = JSON.parse(stdout);
  const { peakMb, cpuSeconds } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
  return { set, tasks, usable, seconds, cpuSeconds, peakMb };
}

function reportOf(figures: readonly Figures[]): string {
  return table(
    ['set', 'usable', 'seconds', 'CPU seconds', 'peak MB'],
    figures.map(({ set, usable, seconds, cpuSeconds, peakMb }) => [
      set,
      String(usable),
      seconds.toFixed(1),
      cpuSeconds.toFixed(1),
      peakMb.toFixed(0),
    ]),
  );
}
