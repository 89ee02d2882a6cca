import type { Task } from '../contracts/task.ts';

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

/** Computes the reward of a task from the rewards of the steps that ran, by the rule of its format. */
export function rewardOfSteps(steps: readonly { readonly reward: number }[], rule: Task['rewardOfSteps']): number {
  if (rule === 'final') return steps.at(-1)?.reward ?? 0;
  return steps.reduce((sum, { reward }) => sum + reward, 0) / Math.max(1, steps.length);
}
