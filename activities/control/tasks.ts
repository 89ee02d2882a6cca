import type { AgentSpec } from '../../infra/agents/agent.ts';
import type { Quarantine } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { rewardOf } from '../../workflows/algorithms/reward.ts';
import { trainAllBranches } from '../../workflows/contracts/trace.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces.ts';
import { chooseTask } from './choose-task.ts';

export interface TaskDependencies {
  readonly tasks: Tasks;
  readonly quarantine: Pick<Quarantine, 'byAddress'>;
  agent(name: string): AgentSpec;
}

export function createTaskActivities({
  tasks,
  quarantine,
  agent,
}: TaskDependencies): Pick<ControlActivities, 'resolveTask' | 'chooseTask' | 'reward'> {
  return {
    resolveTask: (input) =>
      atBoundary(async () => {
        const { usesModel, branches } = agent(input.agent);
        return { task: await tasks.resolve(input.address), usesModel, branches: branches ?? trainAllBranches };
      }),
    chooseTask: (input) => atBoundary(async () => chooseTask(tasks, await quarantine.byAddress(), input)),
    reward: ({ verdict, policy = 'binary' }) => atBoundary(async () => rewardOf(verdict, policy)),
  };
}
