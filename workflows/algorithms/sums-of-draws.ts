/** The draws that remain and the sum of those that were made, with the probability of both. */
interface Drawn {
  readonly left: number;
  readonly sum: number;
  readonly chance: number;
}

/**
 * The distribution of the sum of some values that are drawn at random, without replacement: pairs of sum and probability.
 * For values of 0 and 1 it is the hypergeometric distribution. The values are whole numbers, so that equal sums are found.
 */
export function sumsOfDraws(values: readonly number[], draws: number): readonly (readonly [number, number])[] {
  let remaining = values.length;
  let drawn: readonly Drawn[] = [{ left: draws, sum: 0, chance: 1 }];
  for (const [value, { length: count }] of Map.groupBy(values, (one) => one)) {
    const others = remaining - count;
    const next = new Map<string, Drawn>();
    for (const { left, sum, chance } of drawn) {
      for (let taken = Math.max(0, left - others); taken <= Math.min(count, left); taken += 1) {
        const one = { left: left - taken, sum: sum + taken * value };
        const share = Math.exp(logChoices(count, taken) + logChoices(others, one.left) - logChoices(remaining, left));
        const key = `${one.left} ${one.sum}`;
        next.set(key, { ...one, chance: (next.get(key)?.chance ?? 0) + chance * share });
      }
    }
    drawn = [...next.values()];
    remaining = others;
  }
  return drawn.map(({ sum, chance }) => [sum, chance]);
}

/** The logarithm of the number of choices of k things out of n. */
const logChoices = (n: number, k: number): number => logFactorial(n) - logFactorial(k) - logFactorial(n - k);

const factorials: number[] = [0];
function logFactorial(n: number): number {
  for (let i = factorials.length; i <= n; i += 1) factorials.push((factorials[i - 1] ?? 0) + Math.log(i));
  return factorials[n] ?? 0;
}
