import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exceeds, type NetworkMode, type NetworkPolicy } from '../../workflows/contracts/network.ts';
import type { Task } from '../../workflows/contracts/task.ts';

/**
 * Returns a task with the networks that it gets: those that it asks for, without the optional ones that the operator does not
 * allow. Throws UnsupportedTask if it needs more than that.
 */
export function grantNetwork({ network, testNetwork, ...task }: Task, cap: NetworkMode): Task {
  const ofAgent = grant(network, { cap, id: task.id, who: 'agent' });
  const ofTests = grant(testNetwork, { cap, id: task.id, who: 'tests' });
  return {
    ...task,
    ...(ofAgent !== undefined && { network: ofAgent }),
    ...(ofTests !== undefined && { testNetwork: ofTests }),
  };
}

interface Asked {
  readonly cap: NetworkMode;
  readonly id: string;
  readonly who: 'agent' | 'tests';
}

function grant(policy: NetworkPolicy | undefined, { cap, id, who }: Asked): NetworkPolicy | undefined {
  if (policy === undefined) return undefined;
  const { optional, ...needed } = policy;
  if (!exceeds(policy.mode, cap)) return needed;
  if (optional) return undefined;
  throw new TemperFailure(
    'UnsupportedTask',
    `task ${id}: expected the network ${cap} or less for its ${who}, which TEMPER_NETWORK allows, got ${policy.mode}; set TEMPER_NETWORK=${policy.mode} for the control worker and the hosts, or leave the task out`,
  );
}
