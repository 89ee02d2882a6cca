/**
 * What became of one test, in pytest's words. XFAIL: it failed, and was marked as expected to. XPASS: it was marked so and
 * passed.
 */
export const testStatuses = ['PASSED', 'XFAIL', 'SKIPPED', 'XPASS', 'FAILED', 'ERROR'] as const;
export type TestStatus = (typeof testStatuses)[number];

/** The two lists of tests by which SWE-bench judges a patch. */
export type RequiredList = 'FAIL_TO_PASS' | 'PASS_TO_PASS';

/** What a resolution is worth; see algorithms/resolution-reward.ts. */
export const rewardPolicies = ['binary', 'fraction', 'fail-to-pass'] as const;
export type RewardPolicy = (typeof rewardPolicies)[number];

/** How much of a list is as it should be. */
export interface Share {
  readonly good: number;
  readonly total: number;
}

/** A required test that is not as it should be. */
export interface Shortfall {
  readonly list: RequiredList;
  readonly id: string;
  /** `MISSING`: the log says nothing of it. `AMBIGUOUS`: its id is cut off, and the tests it may mean ended differently. */
  readonly status: TestStatus | 'MISSING' | 'AMBIGUOUS';
}

/**
 * Whether a patch solves its task, by the lists FAIL_TO_PASS and PASS_TO_PASS.
 *
 * - `resolved`: every test of both is as it should be
 * - `partial`: some of FAIL_TO_PASS, and all of PASS_TO_PASS
 * - `unresolved`: anything less
 * - `refused`: the log can't be believed, or there is none of the tests; its shares count nothing
 */
export interface Resolution {
  readonly status: 'resolved' | 'partial' | 'unresolved' | 'refused';
  readonly failToPass: Share;
  readonly passToPass: Share;
  /** The first tests that decided against it, FAIL_TO_PASS before PASS_TO_PASS; the shares say how many there are. */
  readonly decidedBy: readonly Shortfall[];
  /** In words, for people. */
  readonly reason: string;
}
