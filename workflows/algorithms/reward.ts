import type { Resolution, RewardPolicy } from '../contracts/resolution.ts';
import type { Verdict } from '../contracts/verdict.ts';
import { reaches } from './rounding.ts';

/**
 * The reward of a verdict: the number that the tests wrote, or what the policy makes of a resolution. Time used up, a patch
 * that does not apply, and tests that the solution brought down before they could write a reward are caused by the agent: 0.
 */
export function rewardOf(verdict: Verdict, policy: RewardPolicy): number {
  const { kind, value, resolution } = verdict;
  if (kind !== 'graded') return 0;
  return resolution === undefined ? (value ?? 0) : resolutionRewards[policy](resolution);
}

/** Whether the tests pass whole: they wrote the highest reward, or resolve the task. */
export const isSolved = (verdict: Verdict): boolean => reaches(rewardOf(verdict, 'binary'), 1);

/**
 * The reward of a resolution, which is the judgement on a test log, in [0, 1]. A refused resolution is 0 under each policy,
 * because a log that can't be trusted must not pay.
 *
 * - `binary`: 1 if the task is resolved (SWE-bench's measure)
 * - `fraction`: (good of FAIL_TO_PASS + good of PASS_TO_PASS) / tests of both. A patch that changes nothing keeps
 *   PASS_TO_PASS, so it is far above 0 where that list is the longer one.
 * - `fail-to-pass`: good of FAIL_TO_PASS / its tests, 0 if a test of PASS_TO_PASS broke: SWE-bench's `partial`, graded.
 *   If FAIL_TO_PASS is empty, 1 if the task is resolved.
 */
export const resolutionRewards = {
  binary: ({ status }) => (status === 'resolved' ? 1 : 0),
  fraction: ({ status, failToPass, passToPass }) => {
    const total = failToPass.total + passToPass.total;
    return status === 'refused' || total === 0 ? 0 : (failToPass.good + passToPass.good) / total;
  },
  'fail-to-pass': ({ status, failToPass }) => {
    if (status === 'resolved') return 1;
    return status === 'partial' ? failToPass.good / failToPass.total : 0;
  },
} as const satisfies Record<RewardPolicy, (resolution: Resolution) => number>;
