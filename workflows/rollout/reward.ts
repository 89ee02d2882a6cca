import { control } from '../activities.ts';
import { rewardOf } from '../algorithms/reward.ts';
import { isOwnPolicy } from '../contracts/resolution.ts';
import type { Verdict } from '../contracts/verdict.ts';

/** Computes the reward of a verdict: here by a policy of temper's own, and in an activity by a function of the operator's. */
export const computeReward = async (verdict: Verdict, policy: string): Promise<number> =>
  isOwnPolicy(policy) ? rewardOf(verdict, policy) : control.reward({ verdict, policy });
