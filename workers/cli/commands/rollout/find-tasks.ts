import type { AgentSpec } from '../../../../infra/agents/agent.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { openTaskSource } from '../../stack/task-source.ts';
import { UsageError } from '../../text/errors.ts';
import { type RolloutRow, rowWithout } from './row.ts';

export interface FoundTasks {
  readonly ready: readonly ResolvedTask[];
  /** Tasks that are none: one broken one must not hide the results of the others. */
  readonly broken: readonly RolloutRow[];
}

/** Packs what `--tasks` names into the store, so that every host has the same bytes. */
export async function findTasks(named: string, { config, store }: StackClient, agent: AgentSpec): Promise<FoundTasks> {
  const { tasks, address: set } = await openTaskSource(named, { config, store, offline: false });
  const { usesModel, branches = trainAllBranches } = agent;
  const ready: ResolvedTask[] = [];
  const broken: RolloutRow[] = [];
  for await (const { id, pack } of namingOption(tasks.scan(set))) {
    try {
      ready.push({ task: await pack(), usesModel, branches });
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      const { type, message } = error;
      broken.push(rowWithout(null, id, agent.name, 'invalid-task', { type, message, stage: 'resolveTask' }));
    }
  }
  return { ready, broken };
}

/** A set that is none is wrong usage. */
async function* namingOption(tasks: AsyncIterable<FoundTask>): AsyncIterable<FoundTask> {
  try {
    yield* tasks;
  } catch (error) {
    throw error instanceof TemperFailure ? new UsageError(`--tasks: ${error.message}`, { cause: error }) : error;
  }
}
