/** The status of one test, in pytest's words. XFAIL: it failed as expected. XPASS: it passed unexpectedly. */
export type TestStatus = 'PASSED' | 'XFAIL' | 'SKIPPED' | 'XPASS' | 'FAILED' | 'ERROR';

/** The two lists of tests by which SWE-bench judges a patch. */
export type RequiredList = 'FAIL_TO_PASS' | 'PASS_TO_PASS';

/** The ways in which a resolution maps to a reward; see algorithms/reward.ts. */
export const rewardPolicies = ['binary', 'fraction', 'fail-to-pass'] as const;
export type RewardPolicy = (typeof rewardPolicies)[number];

/** Whether a reward policy is one of temper's own. Others are functions of the operator's, which workers have loaded. */
export const isOwnPolicy = (policy: string): policy is RewardPolicy => rewardPolicies.some((known) => known === policy);

/** The number of tests of a list that ended as required, and the length of the list. */
export interface Share {
  readonly good: number;
  readonly total: number;
}

/** A required test that did not end as required. */
export interface Shortfall {
  readonly list: RequiredList;
  readonly id: string;
  /** `MISSING`: the log does not mention it. `AMBIGUOUS`: its id is cut off, and the tests it may stand for ended differently. */
  readonly status: TestStatus | 'MISSING' | 'AMBIGUOUS';
}

/**
 * The judgement on a test log: whether a patch resolves its task, by SWE-bench's lists of required tests FAIL_TO_PASS and
 * PASS_TO_PASS. Tasks whose tests write a reward themselves have none.
 *
 * - `resolved`: every test of both lists ended as required
 * - `partial`: some tests of FAIL_TO_PASS and all of PASS_TO_PASS did
 * - `unresolved`: fewer did
 * - `refused`: the log can't be trusted, or shows no tests; its shares count nothing
 */
export interface Resolution {
  readonly status: 'resolved' | 'partial' | 'unresolved' | 'refused';
  readonly failToPass: Share;
  readonly passToPass: Share;
  /** The first tests that decided against the patch, FAIL_TO_PASS before PASS_TO_PASS; the shares count all of them. */
  readonly decidedBy: readonly Shortfall[];
  /** The reason in words, for people. */
  readonly reason: string;
}
