import { meanOf } from './mean.ts';
import { areEqual } from './rounding.ts';

/**
 * Advantages of the rollouts of one group from their rewards r₁…r_k (all of one task).
 *
 * - `grpo`: (r − mean) / (max(std, minStd) + 1e-8), population std (DeepSeekMath, arXiv 2402.03300, §4.1)
 * - `dr-grpo`: r − mean (arXiv 2503.20783)
 * - `rloo`: r − mean of the other rewards (arXiv 2402.14740)
 *
 * Each rule gives zeros for a group whose rewards are all equal: a difference of rounding would be as much to grpo as one
 * of pass and fail.
 */
export const advantageRules = {
  grpo: (rewards: readonly number[], minStd = 0): number[] => {
    if (areEqual(rewards)) return rewards.map(() => 0);
    const mean = meanOf(rewards);
    const variance = meanOf(rewards.map((reward) => (reward - mean) ** 2));
    return rewards.map((reward) => (reward - mean) / (Math.max(Math.sqrt(variance), minStd) + 1e-8));
  },
  'dr-grpo': (rewards: readonly number[]): number[] => {
    if (areEqual(rewards)) return rewards.map(() => 0);
    const mean = meanOf(rewards);
    return rewards.map((reward) => reward - mean);
  },
  rloo: (rewards: readonly number[]): number[] => {
    if (areEqual(rewards)) return rewards.map(() => 0);
    const sum = rewards.reduce((total, reward) => total + reward, 0);
    return rewards.map((reward) => reward - (sum - reward) / (rewards.length - 1));
  },
} as const satisfies Record<string, (rewards: readonly number[], minStd?: number) => number[]>;
