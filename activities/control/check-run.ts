import type { Client } from '@temporalio/client';
import type { AgentSpec } from '../../infra/agents/agent.ts';
import type { Agents } from '../../infra/agents/index.ts';
import { type EnginePools, servesSeveral } from '../../infra/engine/pools.ts';
import type { Rewards } from '../../infra/rewards.ts';
import type { StartRecords } from '../../infra/store/start-records.ts';
import type { Store } from '../../infra/store/store.ts';
import { requireUnforgeable } from '../../infra/tasks/forgeable.ts';
import { requireNetworks } from '../../infra/tasks/lacking-network.ts';
import type { Quarantine } from '../../infra/tasks/quarantine.ts';
import { lookAtRunTasks } from '../../infra/tasks/run-tasks.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { chainStart, newestChain } from '../../infra/temporal/chain.ts';
import { openRuns } from '../../infra/temporal/runs.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { NetworkMode } from '../../workflows/contracts/network.ts';
import type { RunInput, TasksLeftOut } from '../../workflows/contracts/run.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

export interface RunCheckDependencies {
  readonly rewards: Pick<Rewards, 'require'>;
  readonly client: Client;
  readonly tasks: Tasks;
  readonly quarantine: Pick<Quarantine, 'byAddress'>;
  readonly store: Pick<Store, 'putJson'>;
  readonly starts: Pick<StartRecords, 'write'>;
  /** The network that tasks may have at most. */
  readonly network: NetworkMode;
  readonly pools: EnginePools;
  readonly agent: Agents['get'];
}

/** Refuses a run that would fail later, before it starts anything. */
export function createRunCheck(deps: RunCheckDependencies): Pick<ControlActivities, 'checkRun'> {
  const { client, tasks, pools, agent, rewards, starts } = deps;
  return {
    checkRun: ({ run, runKey, startedAt, input }) =>
      atBoundary(async (signal) => {
        await starts.write({ kind: 'trainingRun', id: run, key: runKey, startedAt, input });
        rewards.require(input.settings.rewardPolicy);
        checkAgent(agent(input.settings.agent, input.settings.agentOptions));
        await checkPool({ client, pools }, run, input.pool);
        // The first task must be readable. A single broken task among many ends only its own group.
        const first = await tasks.choose({ set: input.tasks, seed: input.seed, index: 0, leftOut: new Set() });
        if (first === null) {
          throw new TemperFailure('UnknownTask', `${input.tasks}: expected tasks, got none; name a set that has tasks`);
        }
        await tasks.resolve(first.address);
        return lookAtSet(deps, input, signal);
      }),
  };
}

/**
 * Refuses a run whose set has tasks whose agent could write its own reward, or tasks that lack a network. Returns these if the
 * input says that they are left out.
 */
async function lookAtSet(
  { tasks, quarantine, network, store }: RunCheckDependencies,
  { tasks: set, leaveOut, settings: { offlineTests } }: RunInput,
  signal: AbortSignal,
): Promise<TasksLeftOut | null> {
  const skipped = new Set((await quarantine.byAddress()).keys());
  const found = await lookAtRunTasks(tasks, set, { cap: network, offlineTests, skipped }, signal);
  requireUnforgeable(set, found);
  if (leaveOut === undefined) requireNetworks(set, found);
  const { lacking } = found;
  if (lacking.length === 0) return null;
  return { tasks: lacking.length, list: await store.putJson(lacking.map(({ address }) => address)) };
}

function checkAgent({ name, usesModel }: AgentSpec): void {
  if (!usesModel) {
    throw new TemperFailure(
      'UnknownAgent',
      `settings.agent: expected an agent that calls the model, got ${name}; a run has nothing to train on from it`,
    );
  }
}

/**
 * Refuses a run whose pool is unknown, or serves one run at a time and has an older one: both would publish their whole weights
 * to the same engines, and train on tokens of the other's policy.
 */
export async function checkPool(
  { client, pools }: Pick<RunCheckDependencies, 'client' | 'pools'>,
  workflowId: string,
  name: string,
): Promise<void> {
  const pool = await pools.find(name);
  if (servesSeveral(pool)) return;
  const startedAt = await startOf(client, workflowId);
  // This run has ended meanwhile, so there is nothing to start.
  if (startedAt === null) return;
  for (const other of await openRuns(client)) {
    if (other.run === workflowId || other.pool !== name) continue;
    // The list lags behind, so each run is looked up.
    const otherStartedAt = await startOf(client, other.run);
    if (otherStartedAt === null || otherStartedAt > startedAt) continue;
    throw new TemperFailure(
      'InvalidInput',
      `pool: expected no other run on the pool ${name}, whose engines serve whole weights of one run, got ${other.run}; ` +
        'publish adapters (TEMPER_PUBLISH=lora), name engines of its own in engines.json and start the run with --pool, ' +
        `or wait for ${other.run} or cancel it`,
    );
  }
}

/** Returns the start time of a run's first execution in ms; null if the run has ended, 0 if retention has removed that execution. */
async function startOf(client: Client, run: string): Promise<number | null> {
  const chain = await newestChain(client, run);
  if (chain === null || !chain.running) return null;
  return (await chainStart(client, run, chain))?.getTime() ?? 0;
}
