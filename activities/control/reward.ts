import type { Rewards } from '../../infra/rewards.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the activity that computes a reward by a function of the operator's. Rollouts of 0.4.0 compute each reward in it. */
export function createRewardActivity(rewards: Rewards): Pick<ControlActivities, 'reward'> {
  return {
    reward: ({ verdict, policy }) => atBoundary(async () => rewards.rewardOf(verdict, policy)),
  };
}
