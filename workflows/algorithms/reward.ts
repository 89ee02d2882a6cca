import type { Verdict } from '../contracts/verdict.ts';

/**
 * The reward of a verdict: what the tests wrote. Time used up, a patch that does not apply, and tests that the solution
 * brought down before they could write a reward are the policy's doing: 0.
 */
export function rewardOf(verdict: Verdict): number {
  return verdict.kind === 'graded' && verdict.value !== null ? verdict.value : 0;
}
