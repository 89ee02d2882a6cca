import type { Reward } from '../rewards.ts';

// `temper/reward`: what a verdict is worth, for programs that read results and for rewards of your own.

export { resolutionRewards, rewardOf } from '../../workflows/algorithms/reward.ts';
export {
  type Resolution,
  type RewardPolicy,
  rewardPolicies,
  type Share,
  type Shortfall,
} from '../../workflows/contracts/resolution.ts';
export type { Verdict } from '../../workflows/contracts/verdict.ts';
export type { Reward, RewardKit, RewardModule } from '../rewards.ts';

/** Makes the default export of a module with a reward of your own. */
export const defineReward = (reward: Reward): Reward => reward;
