import { z } from 'zod';
import { hostToolsOf } from '../../infra/agents/host-tools.ts';
import type { Agents } from '../../infra/agents/index.ts';
import { grantNetwork } from '../../infra/egress/grant-network.ts';
import type { Rewards } from '../../infra/rewards.ts';
import type { Records } from '../../infra/store/records.ts';
import type { Store } from '../../infra/store/store.ts';
import type { Quarantine } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { withOfflineTests } from '../../workflows/algorithms/offline-tests.ts';
import type { NetworkMode } from '../../workflows/contracts/network.ts';
import { trainAllBranches } from '../../workflows/contracts/trace.ts';
import type { Upstream } from '../../workflows/contracts/upstream.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';
import { chooseTask } from './choose-task.ts';
import { endedGroup } from './groups.ts';

const addressList = z.array(z.string());

export interface TaskDependencies {
  readonly tasks: Tasks;
  readonly store: Pick<Store, 'getJson'>;
  readonly records: Pick<Records, 'find'>;
  readonly quarantine: Pick<Quarantine, 'byAddress'>;
  readonly agent: Agents['get'];
  readonly rewards: Pick<Rewards, 'require'>;
  /** The network that tasks may have at most. */
  readonly network: NetworkMode;
  /** Looks an upstream model up; refuses a name that is not configured. */
  upstream(name: string, signal: AbortSignal): Promise<Upstream>;
}

/** Creates the activities that look up and choose tasks. */
export function createTaskActivities({
  tasks,
  store,
  records,
  quarantine,
  agent,
  rewards,
  network,
  upstream,
}: TaskDependencies): Pick<ControlActivities, 'resolveTask' | 'chooseTask'> {
  return {
    resolveTask: (input) =>
      atBoundary(async (signal) => {
        const chosen = agent(input.agent, input.agentOptions);
        const { usesModel, branches } = chosen;
        rewards.require(input.rewardPolicy ?? 'binary');
        if (input.upstream !== undefined) await upstream(input.upstream, signal);
        const found = await tasks.resolve(input.address);
        const task = grantNetwork(input.offlineTests ? withOfflineTests(found) : found, network);
        const hostTools = hostToolsOf(chosen, task, input.hostTools);
        const offered = hostTools.length === 0 ? {} : { hostTools: [...hostTools] };
        return { task, usesModel, ...offered, branches: branches ?? trainAllBranches };
      }),
    chooseTask: ({ leftOut, runKey, onFlag, ...input }) =>
      atBoundary(async () => {
        const lacking = leftOut === undefined ? [] : addressList.parse(await store.getJson(leftOut));
        const chosen = await chooseTask(tasks, { quarantined: await quarantine.byAddress(), lacking }, input);
        return { ...chosen, ...(await endedGroup(records, { runKey, index: input.index, ...(onFlag && { onFlag }) })) };
      }),
  };
}
