/** The peak learning rate, and the lengths of its rise and fall in updates; 0 leaves one out. */
export interface LearningRateSchedule {
  readonly learningRate: number;
  readonly learningRateRise: number;
  readonly learningRateFall: number;
}

/**
 * Learning rate of update u of n (from 1): peak × min(1, u / rise, (n − u + 1) / fall). A step without an update leaves the rise
 * where it was, and makes n, the number of updates that a run can still reach, one smaller. The rise keeps the
 * first updates small, for which Adam has no moments yet; the fall lets the weights settle at the end of the run.
 * Source: the trapezoidal ("warm-up, stable, decay") schedule, Hu et al. 2024, arXiv 2404.06395, §4.
 */
export function learningRateAt(schedule: LearningRateSchedule, update: number, updates: number): number {
  const { learningRate, learningRateRise: rise, learningRateFall: fall } = schedule;
  const rising = rise === 0 ? 1 : update / rise;
  const falling = fall === 0 ? 1 : (updates - update + 1) / fall;
  return learningRate * Math.min(1, rising, falling);
}
