import type { TaskScore } from '../contracts/sweep.ts';
import type { ComparedMean, SweepComparison } from '../contracts/sweep-comparison.ts';
import { meanWithInterval } from './clustered-mean.ts';
import { meanOf } from './mean.ts';
import { type PairedRewards, permutationTest } from './permutation-test.ts';
import { sumsOfDraws } from './sums-of-draws.ts';

type Scored = Pick<TaskScore, 'task' | 'counted' | 'passed' | 'rewards'>;

/** A task that both sweeps counted. */
interface Pair {
  readonly task: string;
  readonly before: Scored;
  readonly after: Scored;
}

/**
 * Compares two sweeps over the tasks that both have counted attempts at, by their pass rates and by their rewards. With
 * aᵢ and bᵢ the means of the attempts at task i, the difference is the mean of dᵢ = bᵢ − aᵢ, and its 95 % interval that of the
 * mean of the dᵢ, by the rule of `meanWithInterval` (Miller 2024, arXiv:2411.00640, §4.2: pairing takes the tasks' own
 * difficulty out of the comparison). The interval speaks for tasks like these; the p-value, of the permutation test, for
 * these tasks alone. A task has flipped if at least half of its attempts passed on one side and fewer on the other.
 */
export function compareSweeps(before: readonly Scored[], after: readonly Scored[]): SweepComparison | null {
  const known = new Map(before.filter(({ counted }) => counted > 0).map((score) => [score.task, score]));
  const pairs = after.flatMap((score): Pair[] => {
    const other = known.get(score.task);
    return other === undefined || score.counted === 0 ? [] : [{ task: score.task, before: other, after: score }];
  });
  if (pairs.length === 0) return null;
  return {
    tasks: pairs.length,
    onlyBefore: known.size - pairs.length,
    onlyAfter: after.filter(({ counted }) => counted > 0).length - pairs.length,
    passRate: compareMeans(pairs.map((pair) => ({ before: passesOf(pair.before), after: passesOf(pair.after) }))),
    reward: compareMeans(pairs.map((pair) => ({ before: pair.before.rewards, after: pair.after.rewards }))),
    flipped: pairs
      .map((pair) => ({ task: pair.task, before: rateOf(pair.before), after: rateOf(pair.after) }))
      .filter((rates) => rates.before >= 0.5 !== rates.after >= 0.5)
      .toSorted((a, b) => a.after - a.before - (b.after - b.before) || a.task.localeCompare(b.task)),
    flippedByChance: pairs.reduce((sum, pair) => sum + chanceOfFlip(pair), 0),
  };
}

function compareMeans(tasks: readonly PairedRewards[]): ComparedMean {
  const [before, after] = [tasks.map((task) => meanOf(task.before)), tasks.map((task) => meanOf(task.after))];
  // The mean of differences has the interval of the mean of values in [0, 1], on the scale from −1 to 1.
  const { mean, low, high } = meanWithInterval(after.map((one, index) => (one - (before[index] ?? 0) + 1) / 2));
  return {
    before: meanOf(before),
    after: meanOf(after),
    difference: 2 * mean - 1,
    low: 2 * low - 1,
    high: 2 * high - 1,
    ...permutationTest(tasks),
  };
}

/** Returns the probability that a task flips if its attempts are dealt to the two sweeps at random. */
function chanceOfFlip({ before, after }: Pair): number {
  const passed = before.passed + after.passed;
  return sumsOfDraws([...passesOf(before), ...passesOf(after)], after.counted).reduce((sum, [passedAfter, chance]) => {
    const wasPassed = (passed - passedAfter) / before.counted >= 0.5;
    return wasPassed === passedAfter / after.counted >= 0.5 ? sum : sum + chance;
  }, 0);
}

const rateOf = ({ passed, counted }: Scored): number => passed / counted;

const passesOf = ({ passed, counted }: Scored): number[] =>
  Array.from({ length: counted }, (_, index) => (index < passed ? 1 : 0));
