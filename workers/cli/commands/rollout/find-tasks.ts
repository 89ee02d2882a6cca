import type { AgentSpec } from '../../../../infra/agents/agent.ts';
import { hostToolsOf } from '../../../../infra/agents/host-tools.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { type LackingTask, lackOf, requireNetworks } from '../../../../infra/tasks/lacking-network.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import type { NetworkOptions } from '../../follow/network-options.ts';
import { allowedNetwork } from '../../stack/require-tasks.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { openTaskSource } from '../../stack/task-source.ts';
import { asUsageError, orUsageError } from '../../text/errors.ts';
import { counted, live } from '../../text/output.ts';
import { type RolloutRow, rowWithoutResult } from './rollout-row.ts';

export interface FoundTasks {
  readonly ready: readonly ResolvedTask[];
  /** Tasks that could not be read. A broken task must not hide the results of the rest. */
  readonly broken: readonly RolloutRow[];
  /** Tasks that are left out, because they lack a network. */
  readonly lacking: readonly LackingTask[];
}

interface TasksToFind extends NetworkOptions {
  readonly tasks: string;
  readonly hostTools?: readonly string[];
}

/**
 * Packs the tasks that `--tasks` names into the store, so that every host reads the same bytes. Throws a UsageError if some lack a
 * network, unless the user leaves these out.
 */
export async function findTasks(
  { tasks: named, hostTools: allowed, offlineTests, leaveOut }: TasksToFind,
  { config, store }: StackClient,
  agent: AgentSpec,
): Promise<FoundTasks> {
  const { tasks, address: set } = await openTaskSource(named, { config, store, offline: false });
  const { usesModel, branches = trainAllBranches } = agent;
  const ready: ResolvedTask[] = [];
  const broken: RolloutRow[] = [];
  const lacking: LackingTask[] = [];
  const cap = allowedNetwork(config);
  for await (const { id, address, pack } of withUsageErrors(tasks.scan(set))) {
    live(`${counted(ready.length, 'task')} packed`);
    try {
      const task = await pack();
      const lack = cap === null ? undefined : lackOf(task, { cap, offlineTests });
      if (lack !== undefined) {
        lacking.push({ id, address, lack });
        continue;
      }
      const hostTools = hostToolsOf(agent, task, allowed);
      ready.push({ task, usesModel, ...(hostTools.length > 0 && { hostTools: [...hostTools] }), branches });
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      const failure = { type: error.type, message: error.message, stage: 'resolveTask' };
      broken.push(rowWithoutResult({ rollout: null, task: id, agent: agent.name, outcome: 'invalid-task', failure }));
    }
  }
  live('');
  if (leaveOut === undefined) {
    const found = { tasks: ready.length + lacking.length, lacking };
    orUsageError(() => requireNetworks(set, found), '--tasks');
  }
  return { ready, broken, lacking };
}

/** Passes the tasks on; an invalid task set is a usage error. */
async function* withUsageErrors(tasks: AsyncIterable<FoundTask>): AsyncIterable<FoundTask> {
  try {
    yield* tasks;
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
}
