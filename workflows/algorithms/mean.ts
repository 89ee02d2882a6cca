/** The mean of values; NaN without values. */
export const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The mean of values; null without values. */
export const meanOrNull = (values: readonly number[]): number | null => (values.length === 0 ? null : meanOf(values));
