import { TemperFailure } from '../../workflows/contracts/failures.ts';
import {
  exceeds,
  type NetworkMode,
  type NetworkPolicy,
  networkModes,
  setUpNeeds,
} from '../../workflows/contracts/network.ts';
import type { Task, TaskStep } from '../../workflows/contracts/task.ts';

type Networks = Pick<Task, 'network' | 'testNetwork' | 'steps'>;
type NetworksOfStep = Pick<TaskStep, 'network' | 'testNetwork'>;

/** A network that a task needs and that the operator does not allow. */
export interface NetworkLack {
  readonly who: 'agent' | 'tests';
  /** The name of the step that has the network; null for the whole task. */
  readonly step: string | null;
  /** The mode that would do. */
  readonly mode: NetworkMode;
  /** The mode that `TEMPER_NETWORK` allows at most. */
  readonly cap: NetworkMode;
  /** The command that needs it, with its place; null if the task asks for it. */
  readonly neededFor: string | null;
}

/**
 * Lists the networks that a task needs and that the operator does not allow: those it asks for, unless they are optional, and the
 * default network of tests that download. Without them its tests may never pass, so it must not start.
 */
export function networkLacks({ steps = [], ...whole }: Networks, cap: NetworkMode): readonly NetworkLack[] {
  const lacksOf = ({ network, testNetwork }: NetworksOfStep, step: string | null): readonly NetworkLack[] =>
    [['agent', network] as const, ['tests', testNetwork] as const].flatMap(([who, policy]) => {
      if (policy === undefined || policy.optional === true || !exceeds(policy.mode, cap)) return [];
      return [{ who, step, mode: policy.mode, cap, neededFor: policy.neededFor ?? null }];
    });
  return [...lacksOf(whole, null), ...steps.flatMap((step) => lacksOf(step, step.name))];
}

/** Says what a task lacks, in a clause behind its name. */
export function lackText({ who, step, mode, cap, neededFor }: NetworkLack): string {
  const of = step === null ? '' : `, step ${step}`;
  const why = neededFor === null ? '' : ` (${neededFor})`;
  const needs = who === 'agent' ? 'its agent needs' : 'its tests need';
  return `${of}: ${needs} TEMPER_NETWORK=${mode}${why}, and this stack has TEMPER_NETWORK=${cap}`;
}

/** Says what a user may do about tasks with these lacks, one each. */
export function lackChoices(lacks: readonly NetworkLack[]): string {
  const [its, it] = lacks.length > 1 ? ['their', 'them'] : ['its', 'the task'];
  const mode = networkModes.findLast((one) => lacks.some((lack) => lack.mode === one));
  const ofSetUp = lacks.every(({ neededFor }) => neededFor?.startsWith(setUpNeeds));
  const grant = ofSetUp
    ? 'put what the set-up downloads into the image'
    : `set TEMPER_NETWORK=${mode} for the control worker and the hosts`;
  const offline = lacks.some(({ who }) => who === 'tests')
    ? `, run ${its} tests without a network all the same (--offline-tests, settings.offlineTests)`
    : '';
  return `${grant}${offline}, or leave ${it} out (--leave-out, leaveOut)`;
}

/**
 * Returns a task with the networks that it gets: those that it asks for, without the optional ones that the operator does not
 * allow. Throws UnsupportedTask if it needs more than that.
 */
export function grantNetwork(task: Task, cap: NetworkMode): Task {
  const [lack] = networkLacks(task, cap);
  if (lack !== undefined) {
    throw new TemperFailure('UnsupportedTask', `task ${task.id}${lackText(lack)}; ${lackChoices([lack])}`);
  }
  const { network, testNetwork, steps, ...rest } = task;
  return {
    ...rest,
    ...granted({ network, testNetwork }, cap),
    ...(steps !== undefined && {
      steps: steps.map(({ network: own, testNetwork: ofTests, ...step }) => ({
        ...step,
        ...granted({ network: own, testNetwork: ofTests }, cap),
      })),
    }),
  };
}

function granted(
  { network, testNetwork }: { readonly [Field in keyof NetworksOfStep]: NetworksOfStep[Field] | undefined },
  cap: NetworkMode,
): NetworksOfStep {
  const grant = (policy: NetworkPolicy | undefined): NetworkPolicy | undefined => {
    if (policy === undefined || exceeds(policy.mode, cap)) return undefined;
    const { optional: _, neededFor: __, ...given } = policy;
    return given;
  };
  const [ofAgent, ofTests] = [grant(network), grant(testNetwork)];
  return {
    ...(ofAgent !== undefined && { network: ofAgent }),
    ...(ofTests !== undefined && { testNetwork: ofTests }),
  };
}
