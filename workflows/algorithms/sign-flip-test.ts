import { roundingError } from './rounding.ts';

/** The finest common share: differences are treated as multiples of at most 1 over this, the least common multiple of 1 … 12. */
const finestShare = 27_720;
/** The largest number of additions of the exact test, which takes well under a second. */
const mostWork = 50_000_000;
/** The number of random flips, if the exact test would take too long. */
const draws = 20_000;

export interface SignFlipTest {
  readonly pValue: number;
  readonly method: 'exact' | 'random';
}

/**
 * Fisher's paired randomisation test. If there were no difference between two sides, the sign of each pair's difference
 * would be a coin toss. p is the probability that coin tosses give a sum at least as far from 0 as the observed one
 * (two-sided). It makes no assumption about the distribution; for differences of −1, 0 and 1 (one attempt each, passed or not) it is
 * McNemar's exact test. Fisher 1935, The Design of Experiments, §21; McNemar 1947, Psychometrika 12.
 *
 * It is exact if the differences are multiples of a common share, as means of a few attempts are: the distribution of
 * the sum is built pair by pair. Otherwise it uses random flips, with p = (b + 1) / (draws + 1): Phipson & Smyth 2010,
 * SAGMB 9(1). The flips come from a fixed seed, so that a comparison always gives the same answer.
 */
export function signFlipTest(differences: readonly number[]): SignFlipTest {
  const moved = differences.filter((difference) => Math.abs(difference) > roundingError);
  if (moved.length === 0) return { pValue: 1, method: 'exact' };
  const exact = exactly(moved);
  return exact === null ? { pValue: byDraws(moved), method: 'random' } : { pValue: exact, method: 'exact' };
}

function exactly(differences: readonly number[]): number | null {
  const share = commonShare(differences);
  if (share === null) return null;
  const sizes = differences.map((difference) => Math.abs(Math.round(difference * share)));
  const reach = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.length * reach > mostWork) return null;
  const seen = Math.abs(differences.reduce((sum, difference) => sum + Math.round(difference * share), 0));
  // Index i holds the probability of the sum i − reach.
  let chances = new Float64Array(2 * reach + 1);
  let next = new Float64Array(2 * reach + 1);
  chances[reach] = 1;
  let width = 0;
  for (const size of sizes) {
    next.fill(0, reach - width - size, reach + width + size + 1);
    for (let i = reach - width; i <= reach + width; i += 1) {
      const half = (chances[i] ?? 0) / 2;
      if (half === 0) continue;
      next[i + size] = (next[i + size] ?? 0) + half;
      next[i - size] = (next[i - size] ?? 0) + half;
    }
    [chances, next] = [next, chances];
    width += size;
  }
  const far = chances.reduce((sum, chance, i) => (Math.abs(i - reach) >= seen ? sum + chance : sum), 0);
  return Math.min(1, far);
}

/** Returns the smallest q for which all differences are multiples of 1/q; null if no such q is small enough. */
function commonShare(differences: readonly number[]): number | null {
  let share = 1;
  for (const difference of differences) {
    const factor = multipleFor(difference * share);
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

function byDraws(differences: readonly number[]): number {
  const seen = Math.abs(differences.reduce((sum, difference) => sum + difference, 0));
  const random = randomBits();
  let far = 0;
  for (let draw = 0; draw < draws; draw += 1) {
    let sum = 0;
    for (const difference of differences) sum += random() ? difference : -difference;
    if (Math.abs(sum) >= seen - roundingError) far += 1;
  }
  return (far + 1) / (draws + 1);
}

/** Creates a source of fair coin tosses, always in the same order: the high bit of mulberry32. */
function randomBits(): () => boolean {
  let state = 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) < 0;
  };
}
