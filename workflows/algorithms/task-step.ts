import type { RolloutInput } from '../contracts/rollout.ts';
import type { Task, TaskStep } from '../contracts/task.ts';
import type { Verdict } from '../contracts/verdict.ts';
import { meanOrNull } from './mean.ts';
import { reaches } from './rounding.ts';

/** Returns one step of a task that has several as a task of its own, with its own limits and network. Steps are counted from 1. */
export function taskOfStep({ steps = [], ...whole }: Task, number: number): Task {
  const step = steps[number - 1];
  return {
    ...whole,
    step: number,
    agentTimeoutSec: step?.agentTimeoutSec ?? whole.agentTimeoutSec,
    evaluationTimeoutSec: step?.evaluationTimeoutSec ?? whole.evaluationTimeoutSec,
    ...(step?.network !== undefined && { network: step.network }),
    ...(step?.testNetwork !== undefined && { testNetwork: step.testNetwork }),
  };
}

/**
 * Returns what a graded step lacks of that which the next one needs, in words; nothing if the next one may begin. A score that
 * the tests did not write is not reached.
 */
export function lackingFor(
  { minReward, minScores = {} }: Pick<TaskStep, 'minReward' | 'minScores'>,
  { value, scores = {} }: Pick<Verdict, 'value' | 'scores'>,
): readonly string[] {
  const reward = value ?? 0;
  const ofReward =
    minReward === undefined || reaches(reward, minReward) ? [] : [`a reward of ${reward}, below ${minReward}`];
  const ofScores = Object.entries(minScores).flatMap(([name, least]) => {
    const score = Object.hasOwn(scores, name) ? scores[name] : undefined;
    if (score === undefined) return [`no score ${name}, which must be at least ${least}`];
    return reaches(score, least) ? [] : [`a score ${name} of ${score}, below ${least}`];
  });
  return [...ofReward, ...ofScores];
}

/**
 * Computes the reward of a task from the rewards of its steps. An evaluation follows Harbor's rule: only steps that ran count. In
 * training, steps that did not begin count as 0: otherwise an agent learns to fail a step before one that it cannot solve.
 */
export function rewardOfSteps(
  ran: readonly { readonly reward: number }[],
  { steps = [], rewardOfSteps: rule }: Pick<Task, 'steps' | 'rewardOfSteps'>,
  purpose: RolloutInput['purpose'],
): number {
  const missing = purpose === 'training' ? Math.max(0, steps.length - ran.length) : 0;
  const rewards = [...ran.map(({ reward }) => reward), ...Array<number>(missing).fill(0)];
  if (rule === 'final') return rewards.at(-1) ?? 0;
  return meanOrNull(rewards) ?? 0;
}

/**
 * Returns how a task rewards an agent that gives up, in words: by ending at a step it gets more in an evaluation than by
 * passing it and failing the next one. Null if no step can end the task so.
 */
export function rewardForGivingUp(task: Pick<Task, 'steps' | 'rewardOfSteps'>): string | null {
  const { steps = [] } = task;
  for (const [index, { name, minReward = 0, minScores }] of steps.slice(0, -1).entries()) {
    // Beside a low score, the reward may be full.
    const reward = minScores === undefined ? minReward : 1;
    if (reward === 0) continue;
    const before = Array.from({ length: index }, () => ({ reward: 1 }));
    const stopping = rewardOfSteps([...before, { reward }], task, 'evaluation').toFixed(2);
    const failing = rewardOfSteps([...before, { reward }, { reward: 0 }], task, 'evaluation').toFixed(2);
    const low =
      minScores === undefined ? `with a reward just below ${minReward}` : 'by a low score beside a reward of 1';
    return `ending at step ${name} ${low} gives up to ${stopping} in an evaluation, and failing step ${steps[index + 1]?.name} after it ${failing}`;
  }
  return null;
}
