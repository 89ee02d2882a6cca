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
