import type { Rewards } from '../../infra/rewards.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the activity that computes a reward by a function of the operator's. */
export function createRewardActivity(rewards: Rewards): Pick<ControlActivities, 'reward'> {
  return {
    reward: ({ verdict, policy }) => atBoundary(async () => rewards.rewardOf(verdict, policy)),
  };
}
