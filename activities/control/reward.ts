import { rewardOf } from '../../workflows/algorithms/reward.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the activity that computes a reward. It is a stage of its own, so that people see it in the rollout's history. */
export function createRewardActivity(): Pick<ControlActivities, 'reward'> {
  return {
    reward: ({ verdict, policy }) => atBoundary(async () => rewardOf(verdict, policy)),
  };
}
