/**
 * Adjusts the p-values of several tests, so that the probability of any false finding among those below a level stays at most that
 * level: the i-th smallest of m counts (m − i + 1)-fold, and none less than a smaller one. Holm 1979, Scandinavian Journal of
 * Statistics 6(2).
 */
export function holm(pValues: readonly number[]): readonly number[] {
  const adjusted = pValues.map(() => 1);
  let largest = 0;
  const ascending = [...pValues.entries()].toSorted(([, a], [, b]) => a - b);
  for (const [rank, [index, pValue]] of ascending.entries()) {
    largest = Math.max(largest, Math.min(1, (pValues.length - rank) * pValue));
    adjusted[index] = largest;
  }
  return adjusted;
}
