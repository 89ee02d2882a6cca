import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exceeds, type NetworkMode, type NetworkPolicy } from '../../workflows/contracts/network.ts';
import type { Task, TaskStep } from '../../workflows/contracts/task.ts';

/**
 * Returns a task with the networks that it gets: those that it asks for, without the optional ones that the operator does not
 * allow. Throws UnsupportedTask if it needs more than that.
 */
export function grantNetwork({ network, testNetwork, steps, ...task }: Task, cap: NetworkMode): Task {
  const ofStep = ({ network: own, testNetwork: ofTests, ...step }: TaskStep): TaskStep => ({
    ...step,
    ...granted({ network: own, testNetwork: ofTests }, { cap, id: `${task.id}, step ${step.name}` }),
  });
  return {
    ...task,
    ...granted({ network, testNetwork }, { cap, id: task.id }),
    ...(steps !== undefined && { steps: steps.map(ofStep) }),
  };
}

type Networks = Pick<TaskStep, 'network' | 'testNetwork'>;

function granted(
  { network, testNetwork }: { readonly [Field in keyof Networks]: Networks[Field] | undefined },
  asked: Omit<Asked, 'who'>,
): Networks {
  const ofAgent = grant(network, { ...asked, who: 'agent' });
  const ofTests = grant(testNetwork, { ...asked, who: 'tests' });
  return {
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
