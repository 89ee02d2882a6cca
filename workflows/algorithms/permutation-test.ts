import { roundingError } from './rounding.ts';
import { sumsOfDraws } from './sums-of-draws.ts';

/** The finest common share: rewards are treated as multiples of at most 1 over this, the least common multiple of 1 … 12. */
const finestShare = 27_720;
/** The largest number of additions of the exact test, which takes well under a second. */
const mostWork = 200_000_000;
/** The largest number of sums whose probabilities the exact test keeps: 40 MB. */
const mostSums = 5_000_000;
/** The number of random permutations if the exact test would take too long, and the fewest for very large sweeps. */
const [draws, fewestDraws] = [20_000, 2_000];
/** The largest number of attempts drawn in all random permutations. */
const mostDrawn = 100_000_000;

/** The rewards of the attempts at one task, on both sides. Neither is empty. */
export interface PairedRewards {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export interface PermutationTest {
  readonly pValue: number;
  readonly method: 'exact' | 'random';
}

/**
 * Fisher's paired randomisation test, within each task. If the two sides did not differ at a task, each way to deal its attempts
 * to the sides, as many to each as they have, would be equally likely. p is the probability that dealing them at random
 * gives a sum of differences of means at least as far from 0 as the observed one (two-sided). It assumes no distribution and
 * holds for different numbers of attempts, too. For one attempt each, passed or not, it is McNemar's exact test. Fisher
 * 1935, The Design of Experiments, §21; Pitman 1937, Suppl. J. Royal Statistical Society 4; McNemar 1947, Psychometrika 12.
 *
 * It is exact if the rewards are multiples of a common share: the distribution of the sum is built task by task. Otherwise
 * it uses random permutations, with p = (b + 1) / (draws + 1): Phipson & Smyth 2010, SAGMB 9(1). They come from a fixed
 * seed, so that a comparison always gives the same answer.
 */
export function permutationTest(tasks: readonly PairedRewards[]): PermutationTest {
  const mixed = tasks.filter(({ before, after: [first = 0, ...rest] }) =>
    [...before, ...rest].some((reward) => Math.abs(reward - first) > roundingError),
  );
  if (mixed.length === 0) return { pValue: 1, method: 'exact' };
  const exact = exactly(mixed);
  return exact === null ? { pValue: byDraws(mixed), method: 'random' } : { pValue: exact, method: 'exact' };
}

function exactly(tasks: readonly PairedRewards[]): number | null {
  const share = commonShare(tasks.flatMap(({ before, after }) => [...before, ...after]));
  if (share === null) return null;
  // All differences of means are multiples of 1 over this and the share.
  const attempts = tasks.flatMap(({ before, after }) => [before.length, after.length]).reduce(commonMultiple, 1);
  const inShares = tasks.map(({ before, after }) => {
    const whole = {
      before: before.map((one) => Math.round(one * share)),
      after: after.map((one) => Math.round(one * share)),
    };
    return { ...whole, differenceOf: differenceOfSums(whole, attempts), ...reachOf(whole) };
  });
  const ranges = inShares.map(({ differenceOf, low, high }) => differenceOf(high) - differenceOf(low));
  const width = ranges.reduce((sum, range) => sum + range, 1);
  const work = inShares.reduce((sum, { low, high }) => sum + (high - low + 1) * width, 0);
  if (width > mostSums || work > mostWork) return null;
  const seen = inShares.reduce((sum, { after, differenceOf }) => sum + differenceOf(after.reduce(add, 0)), 0);
  const least = inShares.reduce((sum, { differenceOf, low }) => sum + differenceOf(low), 0);
  // Index i holds the probability of the sum i above the least one.
  let chances = new Float64Array(width);
  let next = new Float64Array(width);
  chances[0] = 1;
  let reached = 0;
  for (const [index, { before, after, differenceOf, low }] of inShares.entries()) {
    next.fill(0);
    for (const [sum, chance] of sumsOfDraws([...before, ...after], after.length)) {
      const step = differenceOf(sum) - differenceOf(low);
      for (let i = 0; i <= reached; i += 1) next[i + step] = (next[i + step] ?? 0) + (chances[i] ?? 0) * chance;
    }
    [chances, next] = [next, chances];
    reached += ranges[index] ?? 0;
  }
  const far = chances.reduce((sum, chance, i) => (Math.abs(i + least) >= Math.abs(seen) ? sum + chance : sum), 0);
  return Math.min(1, far);
}

/** Returns the difference of a task's means by the sum of the rewards after, in whole units. */
function differenceOfSums({ before, after }: PairedRewards, attempts: number): (sumAfter: number) => number {
  const total = [...before, ...after].reduce(add, 0);
  return (sumAfter) => (sumAfter * attempts) / after.length - ((total - sumAfter) * attempts) / before.length;
}

/** Returns the least and the largest sum of rewards that can be dealt to the side after. */
function reachOf({ before, after }: PairedRewards): { readonly low: number; readonly high: number } {
  const all = [...before, ...after].toSorted((a, b) => a - b);
  return { low: all.slice(0, after.length).reduce(add, 0), high: all.slice(before.length).reduce(add, 0) };
}

/** Returns the smallest q for which all values are multiples of 1/q; null if no such q is small enough. */
function commonShare(values: readonly number[]): number | null {
  let share = 1;
  for (const value of new Set(values)) {
    const factor = multipleFor(value * share);
    if (factor === null || share * factor > finestShare) return null;
    share *= factor;
  }
  return share;
}

function multipleFor(value: number): number | null {
  for (let factor = 1; factor <= 1000; factor += 1) {
    if (Math.abs(value * factor - Math.round(value * factor)) < roundingError * factor) return factor;
  }
  return null;
}

function byDraws(tasks: readonly PairedRewards[]): number {
  const dealt = tasks.map(({ before, after }) => ({
    all: [...after, ...before],
    after: after.length,
    differenceOf: differenceOfSums({ before, after }, 1),
  }));
  const seen = Math.abs(dealt.reduce((sum, { all, after, differenceOf }) => sum + differenceOf(sumOf(all, after)), 0));
  const attempts = dealt.reduce((sum, { all }) => sum + all.length, 0);
  const times = Math.round(Math.max(fewestDraws, Math.min(draws, mostDrawn / attempts)));
  const random = createRandom();
  let far = 0;
  for (let draw = 0; draw < times; draw += 1) {
    let sum = 0;
    for (const { all, after, differenceOf } of dealt) sum += differenceOf(sumOfDraw(all, after, random));
    if (Math.abs(sum) >= seen - roundingError) far += 1;
  }
  return (far + 1) / (times + 1);
}

/** Draws some of the values at random and returns their sum. They come first then, as in a Fisher–Yates shuffle. */
function sumOfDraw(values: number[], count: number, random: () => number): number {
  for (let i = 0; i < count; i += 1) {
    const other = i + Math.floor(random() * (values.length - i));
    [values[i], values[other]] = [values[other] ?? 0, values[i] ?? 0];
  }
  return sumOf(values, count);
}

const sumOf = (values: readonly number[], count: number): number => {
  let sum = 0;
  for (let i = 0; i < count; i += 1) sum += values[i] ?? 0;
  return sum;
};

const add = (sum: number, one: number): number => sum + one;

const commonMultiple = (a: number, b: number): number => {
  let [divisor, rest] = [a, b];
  while (rest > 0) [divisor, rest] = [rest, divisor % rest];
  return (a / divisor) * b;
};

/** Creates a source of numbers from 0 to 1, always in the same order: mulberry32. */
function createRandom(): () => number {
  let state = 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
