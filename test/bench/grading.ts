import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import type { Host } from '../../activities/host/host.ts';
import { endlessLease } from '../../infra/hosts/lease.ts';
import type { SandboxKind, SandboxProvider, SandboxSpec } from '../../infra/sandbox/sandbox.ts';
import { sandboxSpec } from '../../infra/sandbox/sandbox-request.ts';
import { readConfigWith } from '../../infra/settings/config.ts';
import { onInterrupt } from '../../workers/cli/follow/interrupt.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { describeError, exitCodeOf } from '../../workers/cli/text/errors.ts';
import { live, note, print, printJson } from '../../workers/cli/text/output.ts';
import { openHost } from '../../workers/open-host.ts';
import { openState } from '../../workers/open-state.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { createClock } from './grading/clock.ts';
import { type CycleFigures, measureCycle } from './grading/cycle.ts';
import { measureEvaluations } from './grading/evaluations.ts';
import { measureParsers } from './grading/parsers.ts';
import { aimsOf, type GradingFigures, reportText } from './grading/report.ts';
import { measureSnapshot, type SnapshotFigures } from './grading/snapshots.ts';
import { benchSet, spread } from './grading/task-set.ts';
import { timedProvider } from './grading/timed-provider.ts';
import { measureWays } from './grading/ways.ts';

/*
 * The cost of grading: evaluations of reference solutions by the activity's code, the cycle of a sandbox beside bare calls of
 * the Docker daemon, and the parsers of logs. Run it on an idle machine.
 */

interface Options {
  readonly sandbox: SandboxKind;
  readonly tasks: number;
  readonly evaluations: number;
  readonly concurrency: number;
  readonly cycles: number;
  readonly snapshots: readonly number[];
  readonly json?: true;
}

/** Limit of the whole benchmark. */
const mostMs = 1_800_000;

await new Command('npm run bench:grading --')
  .description(
    'Measures the cost of an evaluation beside its tests, and the speed of the log parsers. Run it on an idle machine.',
  )
  .addOption(
    new Option('--sandbox <kind>', 'kind of sandbox').choices(['docker', 'local', 'kubernetes']).default('docker'),
  )
  .option('--tasks <n>', 'number of tasks, evenly spread over the pack', wholeNumber(1, 1000), 24)
  .option('--evaluations <n>', 'number of measured evaluations', wholeNumber(1, 10_000), 72)
  .option('--concurrency <n>', 'number of simultaneous evaluations', wholeNumber(1, 64), 2)
  .option(
    '--cycles <n>',
    'number of measured cycles of a sandbox, and of evaluations in each way',
    wholeNumber(1, 1000),
    20,
  )
  .addOption(
    new Option('--snapshots <mb>', 'MB of changes of each measured snapshot, by commas')
      .argParser((text) => text.split(',').map(Number))
      .default([10, 100, 1000]),
  )
  .option('--json', 'one JSON object on stdout')
  .action(main)
  .parseAsync();

async function main(options: Options): Promise<void> {
  const interrupt = onInterrupt('waiting until the sandboxes are gone');
  const signal = AbortSignal.any([interrupt.signal, AbortSignal.timeout(mostMs)]);
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  try {
    const figures = await measure(home, options, signal);
    live('');
    if (options.json) printJson({ ...figures, aims: aimsOf(figures) });
    else print(reportText(figures));
  } catch (error) {
    note(describeError(signal.aborted ? signal.reason : error, false));
    process.exitCode = exitCodeOf(signal.aborted ? signal.reason : error);
  } finally {
    await rm(home, { recursive: true, force: true });
    interrupt.release();
  }
}

async function measure(home: string, options: Options, signal: AbortSignal): Promise<GradingFigures> {
  const { sandbox: kind, concurrency, evaluations } = options;
  note('reading logs with each parser');
  const parsers = measureParsers((parser) => live(parser));
  const set = await benchSet(join(home, 'pack'), options.tasks);
  const config = readConfigWith({ TEMPER_HOME: home, ...(set.root !== null && { TEMPER_TASK_ROOTS: set.root }) });
  const opened = await openHost(config, await openState(config), endlessLease, {
    gateway: { status: async () => null },
  });
  const found = (await opened.providers.seen()).get(kind);
  if (found === undefined)
    throw new Error(`expected ${kind} sandboxes to be ready here, they are not; see temper doctor`);
  const clock = createClock();
  const provider = timedProvider(found, clock);
  const providers = new Map([[kind, provider]]);
  const host: Host = {
    ...opened,
    providers: { all: providers, seen: async () => providers },
    choose: async () => provider,
  };
  try {
    const all = await host.tasks.list(set.address);
    const chosen = spread(all, options.tasks);
    note(`${evaluations} evaluations of ${chosen.length} tasks, ${concurrency} at once`);
    const bench = { host, provider, kind, clock, concurrency, progress: live };
    const figures = await measureEvaluations(bench, chosen, evaluations, signal);
    const cycle = kind === 'docker' ? await cycleOf(opened, chosen[0] ?? '', options, signal) : null;
    const { cycles } = options;
    note(`${cycles} evaluations in each way, by turns`);
    const ways = await measureWays({ host: opened, provider: found, progress: live }, cycles, signal);
    const snapshots = found.carriesChanges
      ? await snapshotsOf({ host: opened, provider: found }, chosen[0] ?? '', options, signal)
      : [];
    const tasks = set.root === null ? set.what : `${chosen.length} of the ${all.length} tasks of ${set.what}`;
    const cores = availableParallelism();
    return { cores, sandbox: kind, tasks, evaluations: figures, cycle, ways, snapshots, parsers };
  } finally {
    for (const { name } of await found.list(host.stack)) await found.remove(name);
    for (const one of opened.providers.all.values()) await one.close();
  }
}

/** Measures snapshots of sandboxes like those of a task, with a larger disk. */
async function snapshotsOf(
  { host, provider }: { readonly host: Host; readonly provider: SandboxProvider },
  address: string,
  { snapshots }: Options,
  signal: AbortSignal,
) {
  const task = { ...(await host.tasks.resolve(address)), diskMb: 8192 };
  const bench = { provider, store: host.store, specOf: specsOf(host, task) };
  const figures: SnapshotFigures[] = [];
  for (const changedMb of snapshots) {
    note(`a snapshot of ${changedMb} MB`);
    figures.push(await measureSnapshot(bench, changedMb, signal));
  }
  return figures;
}

/** Returns the specs of sandboxes like those of a task. */
function specsOf(host: Host, task: Task): (name: string) => SandboxSpec {
  const epoch = { rollout: 'bench', epoch: 1 };
  const request = { epoch, run: '', task, image: task.image, purpose: 'evaluation', sweep: false } as const;
  return (name) =>
    sandboxSpec(host, {
      ...request,
      name,
      expiresAtMs: Date.now() + 600_000,
      mounts: [],
      gatewayDir: null,
      files: [],
      beside: null,
    });
}

/** Measures the cycle of sandboxes like those of a task. */
async function cycleOf(host: Host, address: string, { cycles }: Options, signal: AbortSignal): Promise<CycleFigures> {
  const provider = host.providers.all.get('docker');
  if (provider === undefined) throw new Error('expected docker sandboxes to be ready here');
  note(`${cycles} cycles of a sandbox and of bare calls, by turns`);
  const task = await host.tasks.resolve(address);
  const bench = {
    provider,
    specOf: specsOf(host, task),
    progress: live,
  };
  return measureCycle(bench, cycles, signal);
}
