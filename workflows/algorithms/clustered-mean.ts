import type { Estimate } from '../contracts/sweep.ts';
import { betaQuantile } from './beta.ts';
import { meanOf } from './mean.ts';

/** The numbers of clusters of 0 and of clusters of 1 that are added when the effective number is estimated. */
const added = 2;

/**
 * The mean of values in [0, 1] that come in clusters (the attempts at a task), each cluster with the same weight, and its
 * 95 % interval. Clusters without values are left out. Returns null without any other.
 */
export function clusteredMean(clusters: readonly (readonly number[])[]): Estimate | null {
  const means = clusters.filter((cluster) => cluster.length > 0).map(meanOf);
  return means.length === 0 ? null : { ...meanWithInterval(means), tasks: means.length };
}

/**
 * The mean m of C independent values in [0, 1], such as the means of clusters, and its 95 % interval: the exact one of Clopper
 * and Pearson for a share m of n observations, where n is the effective number of independent observations that the values
 * are worth (Korn & Graubard 1998, Survey Methodology 24(2); Clopper & Pearson 1934, Biometrika 26). n need not be whole.
 *
 * If all values are 0 or 1, n is C, and the interval covers in at least 95 % of all cases. Values between 0 and 1 vary less, so each
 * is worth more than one observation: n = C m (1 − m) / σ², with σ² the mean squared deviation. That is the number of
 * attempts divided by their design effect (Kish 1965, Survey Sampling). A few values say little about their variance, and
 * equal values nothing. So σ² and m are estimated with two further values of 0 and two of 1 (the numbers of Agresti & Coull
 * 1998, The American Statistician 52). They keep n finite, and when a value falls, no bound rises by more than 2e-5.
 */
export function meanWithInterval(values: readonly number[]): Omit<Estimate, 'tasks'> {
  const mean = meanOf(values);
  const effective = effectiveNumber(values);
  const [hits, misses] = [effective * mean, effective * (1 - mean)];
  // Rounding may move a bound past the value that it bounds.
  const low = hits === 0 ? 0 : Math.min(mean, betaQuantile(0.025, hits, misses + 1));
  const high = misses === 0 ? 1 : Math.max(mean, betaQuantile(0.975, hits + 1, misses));
  return { mean, low, high, effective };
}

function effectiveNumber(values: readonly number[]): number {
  const all = [...values, ...Array<number>(added).fill(0), ...Array<number>(added).fill(1)];
  const mean = meanOf(all);
  const squares = all.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const most = all.length * mean * (1 - mean);
  return values.length * Math.max(1, most / squares);
}
