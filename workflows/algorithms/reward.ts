import type { RewardPolicy } from '../contracts/resolution.ts';
import type { Verdict } from '../contracts/verdict.ts';
import { resolutionRewards } from './resolution-reward.ts';

/**
 * The reward of a verdict: what the tests wrote, or what the policy makes of a resolution. Time used up, a patch that does
 * not apply, and tests that the solution brought down before they could write a reward are the policy's doing: 0.
 */
export function rewardOf(verdict: Verdict, policy: RewardPolicy): number {
  const { kind, value, resolution } = verdict;
  if (kind !== 'graded') return 0;
  return resolution === undefined ? (value ?? 0) : resolutionRewards[policy](resolution);
}
