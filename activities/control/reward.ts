import { rewardOf } from '../../workflows/algorithms/reward.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the activity that computes a reward, for rollouts of 0.4.0. Later ones compute it in the workflow. */
export function createRewardActivity(): Pick<ControlActivities, 'reward'> {
  return {
    reward: ({ verdict, policy }) => atBoundary(async () => rewardOf(verdict, policy)),
  };
}
