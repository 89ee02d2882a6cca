import type { SweepComparison, TaskScore } from '../contracts/sweep.ts';
import { meanWithInterval } from './clustered-mean.ts';
import { meanOf } from './mean.ts';
import { signFlipTest } from './sign-flip-test.ts';

type Scored = Pick<TaskScore, 'task' | 'counted' | 'passed'>;

/**
 * Compares two sweeps over the tasks that both have counted attempts at. With aᵢ and bᵢ the shares of passed attempts at
 * task i, the difference is the mean of dᵢ = bᵢ − aᵢ; its p-value is that of the sign-flip test over the dᵢ, its 95 % interval
 * that of the mean of the dᵢ, by the rule of `meanWithInterval` (Miller 2024, arXiv:2411.00640, §4.2: pairing takes the tasks'
 * own difficulty out of the comparison). A task has flipped if at least half of its attempts passed on one side and fewer
 * on the other.
 */
export function compareSweeps(before: readonly Scored[], after: readonly Scored[]): SweepComparison | null {
  const known = new Map(before.filter(({ counted }) => counted > 0).map((score) => [score.task, score]));
  const pairs = after.flatMap(({ task, counted, passed }) => {
    const other = known.get(task);
    if (other === undefined || counted === 0) return [];
    return [{ task, before: other.passed / other.counted, after: passed / counted }];
  });
  if (pairs.length === 0) return null;
  const differences = pairs.map((pair) => pair.after - pair.before);
  const { pValue, method } = signFlipTest(differences);
  const flipped = pairs
    .filter((pair) => pair.before >= 0.5 !== pair.after >= 0.5)
    .toSorted((a, b) => a.after - a.before - (b.after - b.before) || a.task.localeCompare(b.task));
  return {
    tasks: pairs.length,
    onlyBefore: known.size - pairs.length,
    onlyAfter: after.filter(({ counted }) => counted > 0).length - pairs.length,
    before: meanOf(pairs.map((pair) => pair.before)),
    after: meanOf(pairs.map((pair) => pair.after)),
    ...difference(differences),
    pValue,
    method,
    flipped,
  };
}

/** The mean of differences with its interval: that of the mean of values in [0, 1], on the scale from −1 to 1. */
function difference(differences: readonly number[]): Pick<SweepComparison, 'difference' | 'low' | 'high'> {
  const { mean, low, high } = meanWithInterval(differences.map((value) => (value + 1) / 2));
  return { difference: 2 * mean - 1, low: 2 * low - 1, high: 2 * high - 1 };
}
