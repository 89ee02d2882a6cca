import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxKind } from '../../../infra/sandbox/sandbox.ts';
import { type Config, readConfigWith } from '../../../infra/settings/config.ts';
import { type ClientConnection, connectClient } from '../../../infra/temporal/connection.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { live, note } from '../../../workers/cli/text/output.ts';
import { type RunningStack, startStack } from '../../../workers/up/start-stack.ts';
import { countEnded, type EndedRollout, readRollouts, startLoadSweep } from '../../helpers/rollouts/load-sweep.ts';
import { createSleepingAgents, type SleepingAgents } from '../../helpers/rollouts/sleeping-agents.ts';
import { removeSandboxes } from '../../helpers/sandbox/stack-sandboxes.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { orAborted } from '../interruptible.ts';
import { processesOf } from '../rollout/processes.ts';
import { freePorts } from './free-ports.ts';
import { heldBackBy, metricsPortOf } from './metrics.ts';
import { type ProcessSampler, startSampling } from './processes.ts';
import { createSnapshots, type Snapshot } from './snapshot.ts';

/** One measurement: a number of agents on one host, all asleep at once, that end together. */
export interface Cell {
  readonly agents: number;
  readonly sandbox: SandboxKind;
  /** Rollouts that are measured four at once, for comparison. */
  readonly compared: number;
  /** Time for which the agents sleep, in which the cost of waiting is measured; their heartbeats are 80 s apart. */
  readonly sleepSec: number;
}

/** The observations of one cell, from which `figures.ts` computes. */
export interface Observed extends Cell {
  readonly lanes: number;
  readonly evaluations: number;
  readonly fourPerSecond: number;
  /** The largest number of agents that were asleep at once. */
  readonly asleep: number;
  /** The resource that keeps the host from taking more; null if all agents were at work. */
  readonly limitedBy: string | null;
  readonly idle: Snapshot;
  /** The state when all agents were at work. */
  readonly atWork: Snapshot;
  /** The state after they had slept for a while. */
  readonly slept: Snapshot;
  /** The state when the last rollout had ended. */
  readonly drained: Snapshot;
  readonly peaksMb: ReadonlyMap<string, number>;
  readonly restarts: number;
  readonly rollouts: readonly EndedRollout[];
}

const four = 4;
const lookEveryMs = 2_000;
/** Time without another agent at work after which no more are expected. */
const stalledMs = 90_000;

/** Measures a cell in a stack of its own, and removes everything that it started. */
export async function observeCell(cell: Cell, signal: AbortSignal): Promise<Observed> {
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-load-'));
  const config = await configFor(home, cell);
  try {
    note(`${cell.agents} agents in ${cell.sandbox} sandboxes: starting a stack`);
    const stack = await startStack({ config, parts: ['temporal', 'gateway', 'control', 'host'] }, signal);
    const sampler = startSampling(() => processesOf(stack.parts()));
    const server = await connectClient(temporalTarget(config));
    try {
      return await observe({ cell, config, stack, sampler, server }, signal);
    } finally {
      sampler.close();
      await server.close();
      await stack.close();
    }
  } finally {
    live('');
    await removeSandboxes(config);
    await rm(home, { recursive: true, force: true });
  }
}

interface Bench {
  readonly cell: Cell;
  readonly config: Config;
  readonly stack: RunningStack;
  readonly sampler: ProcessSampler;
  readonly server: ClientConnection;
}

async function observe(bench: Bench, signal: AbortSignal): Promise<Observed> {
  const { cell, config, stack, sampler, server } = bench;
  const { agents, sandbox } = cell;
  const snapshot = createSnapshots({ config, sampler, serverPort: await serverPortOf(stack) });
  const tasks = join(config.home, 'tasks');
  const fourPerSecond = await rateAtFour(bench, await writeHarborTask(tasks, 'quick', {}), signal);
  const sleeping = await createSleepingAgents(tasks);
  const idle = await snapshot();
  note(`${agents} agents in ${sandbox} sandboxes: starting them`);
  const sweep = { task: sleeping.task, sandbox, attempts: agents, concurrency: agents };
  const { workflowId } = await startLoadSweep(server.client, 'load', sweep);
  const asleep = await untilAtWork(sleeping, agents, signal);
  const atWork = await snapshot();
  live(`${asleep} agents are at work; measuring what that costs`);
  await sleep(cell.sleepSec * 1000, undefined, { signal });
  const slept = await snapshot();
  await drain(bench, { sleeping, workflowId }, signal);
  const drained = await snapshot();
  return {
    ...cell,
    lanes: config.lanes,
    evaluations: config.evaluations,
    fourPerSecond,
    asleep,
    limitedBy: asleep < agents ? heldBackBy(slept.host) : null,
    idle,
    atWork,
    slept,
    drained,
    peaksMb: sampler.peaks(),
    restarts: stack.parts().reduce((sum, { restarts }) => sum + restarts, 0),
    rollouts: await readRollouts(server.client, workflowId),
  };
}

/** Measures whole rollouts whose agent does its work at once, four at a time, after four that warm the stack up. */
async function rateAtFour({ cell, server }: Bench, task: string, signal: AbortSignal): Promise<number> {
  const run = async (workflowId: string, attempts: number): Promise<number> => {
    const startedAtMs = performance.now();
    const sweep = { task, sandbox: cell.sandbox, attempts, concurrency: four };
    const handle = await startLoadSweep(server.client, workflowId, sweep);
    await orAborted(handle.result(), signal);
    return (attempts * 1000) / (performance.now() - startedAtMs);
  };
  live(`${cell.compared} rollouts, ${four} at once`);
  await run('warm-up', four);
  return run('four', cell.compared);
}

/** Waits until all agents sleep, or no more come; returns their number. */
async function untilAtWork(sleeping: SleepingAgents, agents: number, signal: AbortSignal): Promise<number> {
  let most = 0;
  let grewAtMs = Date.now();
  while (most < agents && Date.now() - grewAtMs < stalledMs) {
    const now = sleeping.asleep();
    if (now > most) grewAtMs = Date.now();
    most = Math.max(most, now);
    live(`${now} of ${agents} agents are at work`);
    await sleep(lookEveryMs, undefined, { signal });
  }
  return most;
}

/** Wakes the agents, and those that the host takes afterwards, until all rollouts have ended. */
async function drain(
  { cell, server }: Bench,
  { sleeping, workflowId }: { readonly sleeping: SleepingAgents; readonly workflowId: string },
  signal: AbortSignal,
): Promise<void> {
  sleeping.wake();
  for (;;) {
    const ended = await countEnded(server.client, workflowId);
    live(`${ended} of ${cell.agents} rollouts have ended`);
    if (ended >= cell.agents) break;
    await sleep(lookEveryMs, undefined, { signal });
    sleeping.wake();
  }
  await orAborted(server.client.workflow.getHandle(workflowId).result(), signal);
}

/** The port at which the stack's own Temporal server serves its metrics. */
async function serverPortOf(stack: RunningStack): Promise<number> {
  const pid = stack.parts().find(({ name }) => name === 'temporal')?.pid ?? null;
  if (pid === null) throw new Error('expected a stack with a Temporal server of its own');
  return metricsPortOf(pid);
}

async function configFor(home: string, { agents }: Cell): Promise<Config> {
  return readConfigWith({
    TEMPER_HOME: home,
    TEMPER_HOST: 'bench-load',
    TEMPER_TASK_ROOTS: join(home, 'tasks'),
    TEMPER_CAPACITY: String(Math.max(agents, four)),
    TEMPER_TEMPORAL_PORT: String(await freePort()),
    TEMPER_UI_PORT: String(await freePort()),
    TEMPER_METRICS_PORT: String(await freePorts(3)),
  });
}
