import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../../../infra/settings/config.ts';
import { backlogOf } from '../../../infra/temporal/backlog.ts';
import { type ClientConnection, connectClient, plainTarget } from '../../../infra/temporal/connection.ts';
import { openShares } from '../../../infra/temporal/shares.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { live, note } from '../../../workers/cli/text/output.ts';
import { startStack } from '../../../workers/up/start-stack.ts';
import { sharePlacementQueue } from '../../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import { startLoadSweep } from '../../helpers/rollouts/load-sweep.ts';
import { createSleepingAgents, type SleepingAgents } from '../../helpers/rollouts/sleeping-agents.ts';
import { removeSandboxes } from '../../helpers/sandbox/stack-sandboxes.ts';
import { createNamespace } from '../../helpers/temporal/production/namespace.ts';
import { type ProductionServer, startProductionServer } from '../../helpers/temporal/production/server.ts';
import { freePorts } from '../load/free-ports.ts';
import { heldBackBy } from '../load/metrics.ts';
import { type ProcessSampler, startSampling } from '../load/processes.ts';
import { createSnapshots, type Snapshot } from '../load/snapshot.ts';
import { type MeasuredProcess, processesOf } from '../rollout/processes.ts';

/** One measurement. */
export interface Fleet {
  /** Rollouts with a sandbox in which the agent sleeps. */
  readonly asleep: number;
  /** Rollouts that wait for a place meanwhile. */
  readonly waiting: number;
  /** Time for which both are measured; the heartbeats of agents are 80 s apart. */
  readonly sleepSec: number;
}

/** The numbers of rollouts at one moment. */
interface Population {
  readonly started: number;
  readonly asleep: number;
  /** Rollouts in the placement queues at the server. */
  readonly waiting: number;
}

export interface ObservedFleet extends Fleet {
  readonly reached: Population;
  /** The resource that keeps the host from taking more; null if as many agents sleep as were asked for. */
  readonly limitedBy: string | null;
  readonly idle: Snapshot;
  /** The state when all rollouts sleep or wait. */
  readonly full: Snapshot;
  /** The state after they did for a while. */
  readonly slept: Snapshot;
  /** The state when all agents had ended and the next ones slept in their places. */
  readonly turned: Snapshot;
  /** The rollouts that ended between the last two. */
  readonly ended: readonly RolloutResult[];
  readonly peaksMb: ReadonlyMap<string, number>;
}

const namespace = 'fleet';
/** The largest number of attempts that a sweep makes at one task. */
const sweepSize = 1_000;
const lookEveryMs = 2_000;
/** Time without another rollout asleep or waiting after which no more are expected. */
const stalledMs = 90_000;

/** Measures a fleet on a Temporal server of its own, and removes everything that it started. */
export async function observeFleet(fleet: Fleet, signal: AbortSignal): Promise<ObservedFleet> {
  await using undo = new AsyncDisposableStack();
  undo.defer(() => live(''));
  note('starting PostgreSQL, a Temporal server and a stack');
  const production = await startProductionServer();
  undo.defer(() => production.close());
  await createNamespace(plainTarget(production.address, namespace));
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-fleet-'));
  undo.defer(() => rm(home, { recursive: true, force: true }));
  const config = await configFor(home, fleet, production);
  undo.defer(async () => void (await removeSandboxes(config)));
  const stack = await startStack({ config, parts: ['gateway', 'control', 'host'] }, signal);
  undo.defer(() => stack.close());
  const sampler = startSampling(() => [...serversOf(production), ...processesOf(stack.parts())]);
  undo.defer(async () => sampler.close());
  const server = await connectClient(temporalTarget(config));
  undo.defer(() => server.close());
  const agents = await createSleepingAgents(join(home, 'tasks'));
  return await observe({ fleet, config, production, sampler, server, agents }, signal);
}

interface Bench {
  readonly fleet: Fleet;
  readonly config: Config;
  readonly production: ProductionServer;
  readonly sampler: ProcessSampler;
  readonly server: ClientConnection;
  readonly agents: SleepingAgents;
}

async function observe(bench: Bench, signal: AbortSignal): Promise<ObservedFleet> {
  const { fleet, config, production, sampler, server, agents } = bench;
  const snapshot = createSnapshots({ config, sampler, serverPort: production.metricsPort });
  const idle = await snapshot();
  const total = fleet.asleep + fleet.waiting;
  for (let started = 0; started < total; started += sweepSize) {
    const attempts = Math.min(sweepSize, total - started);
    const sweep = { task: agents.task, sandbox: 'local', attempts, concurrency: attempts } as const;
    await startLoadSweep(server.client, `fleet-${started / sweepSize + 1}`, sweep);
  }
  const reached = await untilFull(bench, signal);
  const full = await snapshot();
  live(`${reached.asleep} agents sleep and ${reached.waiting} rollouts wait; measuring what that costs`);
  await sleep(fleet.sleepSec * 1000, undefined, { signal });
  const slept = await snapshot();
  await turnOver(bench, reached, signal);
  const turned = await snapshot();
  return {
    ...fleet,
    reached,
    limitedBy: reached.asleep < fleet.asleep ? heldBackBy(slept.host) : null,
    idle,
    full,
    slept,
    turned,
    ended: await endedRollouts(server),
    peaksMb: sampler.peaks(),
  };
}

/** Waits until all rollouts sleep or wait, or no more come. */
async function untilFull({ fleet, server, agents }: Bench, signal: AbortSignal): Promise<Population> {
  const { client } = server;
  let most = 0;
  let grewAtMs = Date.now();
  for (;;) {
    const backlogs = (await openShares(client)).map(({ share }) => backlogOf(client, sharePlacementQueue(share)));
    const waiting = (await Promise.all(backlogs)).reduce((sum, backlog) => sum + backlog, 0);
    const { count: started } = await client.workflow.count('WorkflowType="rollout"');
    const now = { started, asleep: agents.asleep(), waiting };
    live(`${started} rollouts have started; ${now.asleep} agents sleep, ${waiting} rollouts wait`);
    if (now.asleep + waiting > most) [most, grewAtMs] = [now.asleep + waiting, Date.now()];
    // A host may hold a rollout of each sweep whose place another one took.
    const held = Math.ceil((fleet.asleep + fleet.waiting) / sweepSize);
    if (now.asleep >= fleet.asleep && waiting >= fleet.waiting - held) return now;
    if (Date.now() - grewAtMs > stalledMs) return now;
    await sleep(lookEveryMs, undefined, { signal });
  }
}

/** Wakes all agents, and waits until the next rollouts sleep in their places. */
async function turnOver({ server, agents }: Bench, reached: Population, signal: AbortSignal): Promise<void> {
  const woken = agents.wake();
  for (;;) {
    const { count: ended } = await server.client.workflow.count(`${rolloutsThat} ExecutionStatus != "Running"`);
    const asleep = agents.asleep();
    live(`${ended} of ${woken} rollouts have ended, ${asleep} of the next sleep`);
    if (ended >= woken && asleep >= Math.min(woken, reached.waiting)) return;
    await sleep(lookEveryMs, undefined, { signal });
  }
}

const rolloutsThat = 'WorkflowType="rollout" AND';

async function endedRollouts({ client }: ClientConnection): Promise<RolloutResult[]> {
  const results: RolloutResult[] = [];
  for await (const { workflowId } of client.workflow.list({ query: `${rolloutsThat} ExecutionStatus="Completed"` })) {
    results.push(await client.workflow.getHandle(workflowId).result());
  }
  return results;
}

/** Lists the processes of the server and its database. */
function serversOf({ pid, postgresql }: ProductionServer): readonly MeasuredProcess[] {
  const [server, database] = [pid(), postgresql.pid()];
  if (server === undefined || database === undefined) throw new Error('the Temporal server or its database has ended');
  return [
    { name: 'temporal', pid: server, of: 'itself' },
    { name: 'postgresql', pid: database, of: 'tree' },
  ];
}

const configFor = async (home: string, { asleep }: Fleet, { address }: ProductionServer): Promise<Config> =>
  readConfig({
    ...process.env,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    TEMPER_HOME: home,
    TEMPER_HOST: 'bench-fleet',
    TEMPER_TASK_ROOTS: join(home, 'tasks'),
    TEMPER_SANDBOX: 'local',
    TEMPER_CAPACITY: String(asleep),
    TEMPER_METRICS_PORT: String(await freePorts(3)),
  });
