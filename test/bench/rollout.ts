/**
 * Measures what a rollout costs and how much of it is temper's own: the whole pipeline with `nop`, by process and by stage,
 * and the bare sandbox operations that it consists of. Run it on an idle machine: the wall time and the CPU time of all cores
 * include everything that runs, and the processes' own CPU time grows when others use the caches.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { Command, Option } from 'commander';
import { createRuntime, runtimeTarget } from '../../infra/agents/runtime.ts';
import { captureDiff } from '../../infra/grading/capture/capture-diff.ts';
import { runTests } from '../../infra/grading/judge-diff.ts';
import { prepareWorkspace, workspaceFiles } from '../../infra/grading/workspace/prepare-workspace.ts';
import { openProviders } from '../../infra/sandbox/providers.ts';
import type { Sandbox, SandboxKind, SandboxProvider, SandboxSpec } from '../../infra/sandbox/sandbox.ts';
import { type Config, readConfigWith } from '../../infra/settings/config.ts';
import { createTasks, type Tasks } from '../../infra/tasks/tasks.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { type Cost, each, mean, perRun } from './measure.ts';
import { cpuByStage } from './rollout/cpu-by-stage.ts';
import { callsByStage, type StageCalls, startCallCounter } from './rollout/docker-calls.ts';
import { type Floor, openFloor } from './rollout/floor.ts';
import { cpuMsOf, processesOf } from './rollout/processes.ts';
import { printCalls, printCosts, printStages, type WholeCost } from './rollout/report.ts';

const taskAddress = 'generated:train/1/0';
const startTimeoutMs = 120_000;
/** The number of rounds in which bare operations and rollouts take turns, so that other work on the machine hits both alike. */
const rounds = 4;

await new Command('npm run bench:rollout --')
  .description("Measures what a rollout of nop costs and how much of it is temper's own. Run it on an idle machine.")
  .addOption(new Option('--sandbox <kind>', 'kind of sandbox').choices(['local', 'docker']).default('local'))
  .option('--rollouts <n>', 'number of rollouts to measure', wholeNumber(1, 10_000), 60)
  .option('--concurrency <n>', 'rollouts that run at once', wholeNumber(1, 500), 4)
  .option('--alone <n>', 'number of rollouts that run alone, to measure each stage', wholeNumber(0, 1000), 20)
  .action((options) => main(options))
  .parseAsync();

interface Options {
  readonly sandbox: SandboxKind;
  readonly rollouts: number;
  readonly concurrency: number;
  readonly alone: number;
}

async function main(options: Options): Promise<void> {
  const { sandbox: kind, rollouts, concurrency } = options;
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  try {
    const { bare, whole } = await measure(await configFor(home, concurrency), options);
    printCosts(`${rollouts} rollouts of nop in ${kind} sandboxes, ${concurrency} at once`, bare, whole);
    printStages(whole);
    if (kind === 'docker') printCalls(await countDockerCalls(home));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function configFor(home: string, concurrency: number): Promise<Config> {
  return readConfigWith({
    TEMPER_HOME: home,
    TEMPER_CAPACITY: String(concurrency),
    TEMPER_EVALUATIONS: String(concurrency),
    TEMPER_TEMPORAL_PORT: String(await freePort()),
    TEMPER_UI_PORT: String(await freePort()),
  });
}

/** Counts the requests to the Docker daemon during each stage of one rollout, in a stack of its own. */
async function countDockerCalls(home: string): Promise<readonly StageCalls[]> {
  const counter = await startCallCounter(home);
  const earlier = process.env.DOCKER_HOST;
  process.env.DOCKER_HOST = counter.address;
  const config = await configFor(join(home, 'counted'), 1);
  const stack = await startStack(
    { config, parts: ['temporal', 'control', 'host'] },
    AbortSignal.timeout(startTimeoutMs),
  );
  const { client, close } = await connectClient(temporalTarget(config));
  try {
    await oneRollout(client, 'docker');
    return await callsByStage(client, await oneRollout(client, 'docker'), counter.calls);
  } finally {
    await close();
    await stack.close();
    await counter.close();
    if (earlier === undefined) delete process.env.DOCKER_HOST;
    else process.env.DOCKER_HOST = earlier;
  }
}

async function measure(
  config: Config,
  { sandbox: kind, rollouts, concurrency, alone }: Options,
): Promise<{ readonly bare: Cost; readonly whole: WholeCost }> {
  const stack = await startStack(
    { config, parts: ['temporal', 'control', 'host'] },
    AbortSignal.timeout(startTimeoutMs),
  );
  const { client, close } = await connectClient(temporalTarget(config));
  const bare = await openBare(config, kind);
  let floor: Floor | undefined;
  const whole = async (): Promise<void> => void (await oneRollout(client, kind));
  try {
    await each(concurrency, concurrency, () => oneBare(bare));
    await each(concurrency, concurrency, whole);
    const processes = processesOf(stack.parts());
    const [server] = processes;
    if (server === undefined) throw new Error('expected the Temporal server to run');
    floor = await openFloor(config, client, server);
    const cpuMs = processes.map(() => 0);
    const floorMs: number[] = [];
    const costs: { bare: Cost[]; whole: Cost[] } = { bare: [], whole: [] };
    const perRound = Math.ceil(rollouts / rounds);
    for (let round = 0; round < rounds; round += 1) {
      costs.bare.push(await perRun(perRound, () => each(perRound, concurrency, () => oneBare(bare))));
      floorMs.push(await floor.measure(perRound, concurrency));
      const before = processes.map(cpuMsOf);
      costs.whole.push(await perRun(perRound, () => each(perRound, concurrency, whole)));
      for (const [at, measured] of processes.entries())
        cpuMs[at] = (cpuMs[at] ?? 0) + cpuMsOf(measured) - (before[at] ?? 0);
    }
    return {
      bare: mean(costs.bare),
      whole: {
        ...mean(costs.whole),
        floorMs: floorMs.reduce((sum, ms) => sum + ms, 0) / rounds,
        processes: processes.map((measured, at) => ({ ...measured, cpuMs: (cpuMs[at] ?? 0) / (rounds * perRound) })),
        stages: await cpuByStage(client, processes, alone, () => oneRollout(client, kind)),
      },
    };
  } finally {
    await floor?.close();
    await bare.close();
    await close();
    await stack.close();
  }
}

/** Runs one rollout, started as `temper rollout` starts it, and returns its workflow id. */
async function oneRollout(client: Client, kind: SandboxKind): Promise<string> {
  const workflowId = `bench/${randomUUID()}`;
  const result: RolloutResult = await client.workflow.execute('rollout', {
    taskQueue: controlQueue,
    workflowId,
    args: [{ task: taskAddress, agent: 'nop', sandbox: kind }],
    typedSearchAttributes: [
      { key: searchAttributes.task, value: taskAddress },
      { key: searchAttributes.agent, value: 'nop' },
    ],
  });
  if (result.outcome !== 'scored') throw new Error(`expected a scored rollout, got ${JSON.stringify(result.failure)}`);
  return workflowId;
}

async function openBare(config: Config, kind: SandboxKind): Promise<Bare> {
  const store = createFileStore(config.paths.store);
  const tasks = createTasks({ store, roots: [], dataSets: { directory: config.cacheDir, offline: true } });
  const task = await tasks.resolve(taskAddress);
  const { all, ready } = await openProviders({ stack: 'bench', root: config.paths.sandboxes, preferred: kind });
  const provider = await ready(kind);
  const close = async (): Promise<void> => {
    for (const one of all.values()) await one.close();
  };
  return { config, store, tasks, task, provider, close };
}

interface Bare {
  readonly config: Config;
  readonly store: ReturnType<typeof createFileStore>;
  readonly tasks: Tasks;
  readonly task: Task;
  readonly provider: SandboxProvider;
  close(): Promise<void>;
}

/** Runs the same sandbox operations as the stages of a rollout, one after the other. */
async function oneBare({ config, store, tasks, task, provider }: Bare): Promise<void> {
  const signal = AbortSignal.timeout(120_000);
  const files = await tasks.open(task);
  const id = randomUUID();
  const runtime = await createRuntime({ cacheDir: config.cacheDir }).prepare();
  const mounts = provider.kind === 'local' ? [{ ...runtime, readOnly: true as const }] : [];
  const placed = workspaceFiles(files, task.workdir);
  const agent = await provider.ensure({ ...specOf(task, id, 'agent', []), files: placed }, signal);
  const workspace = { workdir: task.workdir, placed: true };
  const { baseCommit } = await prepareWorkspace(agent, files, { ...workspace, keep: true }, signal);
  await agent.start({ key: 'agent', account: 'agent', argv: ['true'], env: {} }, signal);
  await agent.wait('agent', { timeoutMs: 60_000 }, signal);
  await agent.killProcesses('agent');
  await captureDiff(agent, store, { workdir: task.workdir, baseCommit, failedBefore: false }, signal);
  await provider.remove(agent.name);
  const evaluation: Sandbox = await provider.ensure(
    { ...specOf(task, id, 'evaluation', mounts), files: placed },
    signal,
  );
  await prepareWorkspace(evaluation, files, { ...workspace, keep: false }, signal);
  const path = provider.kind === 'local' ? `${runtimeTarget}/bin:/usr/bin:/bin` : null;
  await runTests(
    evaluation,
    files,
    { workdir: task.workdir, timeoutMs: 60_000, attempt: 1, diskBeforeMb: 0, path },
    signal,
  );
  await provider.remove(evaluation.name);
}

function specOf(task: Task, id: string, purpose: 'agent' | 'evaluation', mounts: SandboxSpec['mounts']): SandboxSpec {
  const labels = { stack: 'bench', run: '', rollout: id, epoch: 1, purpose, expiresAtMs: Date.now() + 600_000 };
  const { image, cpus, memoryMb, diskMb, workdir } = task;
  return { name: `temper-bench-${id}-${purpose}`, image, labels, cpus, memoryMb, diskMb, pids: 512, workdir, mounts };
}
