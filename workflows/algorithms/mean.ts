import { rangeOf } from './rounding.ts';

/** The mean of values, which rounding never carries past the smallest or the largest one; NaN without values. */
export const meanOf = (values: readonly number[]): number => weightedMean(values.map((value) => [value, 1]));

/** The mean of values; null without values. */
export const meanOrNull = (values: readonly number[]): number | null => (values.length === 0 ? null : meanOf(values));

/**
 * The mean of values by their weights, which are at least 0. Rounding never carries it past the smallest or the largest
 * value that has a weight, so that the mean of equal values is their value. NaN without a weight above 0.
 */
export function weightedMean(weighted: readonly (readonly [value: number, weight: number])[]): number {
  const counted = weighted.filter(([, weight]) => weight > 0);
  const total = counted.reduce((sum, [, weight]) => sum + weight, 0);
  const sum = counted.reduce((before, [value, weight]) => before + value * weight, 0);
  const [low, high] = rangeOf(counted.map(([value]) => value));
  return Math.max(low, Math.min(high, sum / total));
}
