/**
 * The largest difference of two rewards that a different order of the same additions explains. A smaller difference is no
 * judgement: it makes no reward fail a threshold, and no variance.
 */
export const roundingError = 1e-9;

/** Whether a value is at least a threshold, up to a rounding error. */
export const reaches = (value: number, least: number): boolean => value >= least - roundingError;

/** Whether all values are equal, up to rounding errors; also without values. */
export const areEqual = (values: readonly number[]): boolean => {
  const [low, high] = rangeOf(values);
  return values.length === 0 || high - low <= roundingError;
};

/** The smallest and the largest of values; [∞, −∞] without values. */
export const rangeOf = (values: readonly number[]): readonly [low: number, high: number] => [
  values.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY),
  values.reduce((high, value) => Math.max(high, value), Number.NEGATIVE_INFINITY),
];

/** Returns a number from 0 to 1, to which rounding errors count as the nearest bound; null for anything else. */
export function asReward(value: unknown): number | null {
  if (typeof value !== 'number' || Number.isNaN(value)) return null;
  const bounded = Math.max(0, Math.min(1, value));
  return areEqual([value, bounded]) ? bounded : null;
}
