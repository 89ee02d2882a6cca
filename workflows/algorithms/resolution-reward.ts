import type { Resolution, RewardPolicy } from '../contracts/resolution.ts';

/**
 * The reward of a resolution, in [0, 1]. A refused one is 0 in each: what can't be believed must not pay.
 *
 * - `binary`: 1 where the task is resolved (SWE-bench's measure)
 * - `fraction`: (good of FAIL_TO_PASS + good of PASS_TO_PASS) / tests of both. A patch that changes nothing keeps
 *   PASS_TO_PASS, so it is far above 0 where that list is the longer one.
 * - `fail-to-pass`: good of FAIL_TO_PASS / its tests, 0 where a test of PASS_TO_PASS broke: SWE-bench's `partial`, graded.
 *   Where there is no FAIL_TO_PASS, 1 if the task is resolved.
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
