import type { SweepComparison, TaskScore } from '../contracts/sweep.ts';
import { wilson } from './clustered-mean.ts';
import { meanOf } from './mean.ts';
import { areEqual } from './rounding.ts';
import { signFlipTest } from './sign-flip-test.ts';
import { tFactor } from './student-t.ts';

type Scored = Pick<TaskScore, 'task' | 'counted' | 'passed'>;

/**
 * Compares two sweeps over the tasks that both have counted attempts at. With aᵢ and bᵢ the shares of passed attempts at
 * task i, the difference is the mean of dᵢ = bᵢ − aᵢ; its p-value is that of the sign-flip test over the dᵢ, its 95 % interval
 * the paired one, d̄ ± t √(Σ (dᵢ − d̄)² / (n (n − 1))) with n − 1 degrees of freedom (Miller 2024, arXiv:2411.00640, §4.2: pairing
 * takes the tasks' own difficulty out of the comparison). If all dᵢ are equal the interval is Wilson's for n
 * observations, on the scale from −1 to 1. A task has flipped if at least half of its attempts passed on one side
 * and fewer on the other.
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

function difference(differences: readonly number[]): Pick<SweepComparison, 'difference' | 'low' | 'high'> {
  const n = differences.length;
  const mean = meanOf(differences);
  if (areEqual(differences)) {
    const { low, high } = wilson((mean + 1) / 2, n);
    return { difference: mean, low: 2 * low - 1, high: 2 * high - 1 };
  }
  const squares = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const half = tFactor(n - 1) * Math.sqrt(squares / (n * (n - 1)));
  return { difference: mean, low: Math.max(-1, mean - half), high: Math.min(1, mean + half) };
}
