import { control } from '../activities.ts';
import { rewardOf } from '../algorithms/reward.ts';
import { isOwnPolicy } from '../contracts/resolution.ts';
import type { StepResult } from '../contracts/rollout.ts';
import type { Task } from '../contracts/task.ts';
import type { Verdict } from '../contracts/verdict.ts';

/** Computes the reward of a verdict: here by a policy of temper's own, and in an activity by a function of the operator's. */
export const computeReward = async (verdict: Verdict, policy: string): Promise<number> =>
  isOwnPolicy(policy) ? rewardOf(verdict, policy) : control.reward({ verdict, policy });

/** Computes the reward of a task from the rewards of the steps that ran, by the rule of its format. */
export function rewardOfSteps(steps: readonly Pick<StepResult, 'reward'>[], rule: Task['rewardOfSteps']): number {
  if (rule === 'final') return steps.at(-1)?.reward ?? 0;
  return steps.reduce((sum, { reward }) => sum + reward, 0) / Math.max(1, steps.length);
}
