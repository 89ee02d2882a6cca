import type { GroupSummary } from '../../workflows/contracts/group.ts';
import { equalRewards, fates, type Outcome, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import type { StepResult } from '../../workflows/contracts/run.ts';

/** Makes the summary of a group with these outcomes, sampled from this version on. */
export const groupSummary = (
  index: number,
  minVersion: number,
  counts: Partial<Record<Outcome, number>>,
  rest: Partial<GroupSummary> = {},
): GroupSummary => ({
  runKey: '',
  index,
  minVersion,
  outcomes: { ...zeroCount(outcomes), ...counts },
  meanReward: null,
  rewards: 0,
  spread: 'mixed',
  seconds: 1,
  cost: {},
  ...rest,
});

/** Makes the result of a step with these groups, without an update. */
export const stepResult = (
  step: number,
  groups: Partial<StepResult['groups']>,
  rest: Partial<StepResult> = {},
): StepResult => ({
  step,
  batch: null,
  groups: { ...zeroCount(fates), ...groups },
  equalGroups: zeroCount(equalRewards),
  rollouts: 0,
  tokens: 0,
  meanReward: null,
  scoredReward: null,
  staleness: 0,
  metrics: {},
  skippedBecause: null,
  ...rest,
});
