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

/** Computes the reward of a task from the rewards of the steps that ran, by the rule of its format. */
export function rewardOfSteps(steps: readonly { readonly reward: number }[], rule: Task['rewardOfSteps']): number {
  if (rule === 'final') return steps.at(-1)?.reward ?? 0;
  return meanOrNull(steps.map(({ reward }) => reward)) ?? 0;
}
