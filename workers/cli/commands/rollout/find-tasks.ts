import type { AgentSpec } from '../../../../infra/agents/agent.ts';
import { hostToolsOf } from '../../../../infra/agents/host-tools.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { openTaskSource } from '../../stack/task-source.ts';
import { asUsageError } from '../../text/errors.ts';
import { counted, live } from '../../text/output.ts';
import { type RolloutRow, rowWithoutResult } from './rollout-row.ts';

export interface FoundTasks {
  readonly ready: readonly ResolvedTask[];
  /** Tasks that could not be read. A broken task must not hide the results of the rest. */
  readonly broken: readonly RolloutRow[];
}

/** Packs the tasks that `--tasks` names into the store, so that every host reads the same bytes. */
export async function findTasks(
  { tasks: named, hostTools: allowed }: { readonly tasks: string; readonly hostTools?: readonly string[] },
  { config, store }: StackClient,
  agent: AgentSpec,
): Promise<FoundTasks> {
  const { tasks, address: set } = await openTaskSource(named, { config, store, offline: false });
  const { usesModel, branches = trainAllBranches } = agent;
  const ready: ResolvedTask[] = [];
  const broken: RolloutRow[] = [];
  for await (const { id, pack } of withUsageErrors(tasks.scan(set))) {
    live(`${counted(ready.length, 'task')} packed`);
    try {
      const task = await pack();
      const hostTools = hostToolsOf(agent, task, allowed);
      ready.push({ task, usesModel, ...(hostTools.length > 0 && { hostTools: [...hostTools] }), branches });
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      const failure = { type: error.type, message: error.message, stage: 'resolveTask' };
      broken.push(rowWithoutResult({ rollout: null, task: id, agent: agent.name, outcome: 'invalid-task', failure }));
    }
  }
  live('');
  return { ready, broken };
}

/** Passes the tasks on; an invalid task set is a usage error. */
async function* withUsageErrors(tasks: AsyncIterable<FoundTask>): AsyncIterable<FoundTask> {
  try {
    yield* tasks;
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
}
