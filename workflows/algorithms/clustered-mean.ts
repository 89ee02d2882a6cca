import type { Estimate } from '../contracts/sweep.ts';
import { meanOf } from './mean.ts';
import { areEqual } from './rounding.ts';
import { tFactor, zFactor } from './student-t.ts';

/**
 * The mean of values in [0, 1] that come in clusters (the attempts at a task), each cluster with the same weight, and its
 * 95 % interval. Attempts at one task are not independent, so the clusters count as the observations: with x̄ᵢ the mean of
 * cluster i of C, the mean is m = Σ x̄ᵢ / C, its standard error s = √(Σ (x̄ᵢ − m)² / (C (C − 1))), the interval m ± t s with
 * Student's t of C − 1 degrees of freedom, cut to [0, 1]. For clusters of equal size s is the cluster-robust standard error
 * with the correction C / (C − 1): Miller 2024, arXiv:2411.00640, §2.2; Cameron & Miller 2015, J. Human Resources 50(2), §II
 * and §VI.
 *
 * If all cluster means are equal (or there is one cluster) s is 0 and carries no information. Then the interval is Wilson's
 * for C observations (Wilson 1927, JASA 22), which stays wide: ten tasks that all pass do not prove 100 %. It is made for
 * observations of 0 or 1. Of all values in [0, 1] with the same mean these vary most, so for other values it is wider than
 * necessary. Returns null without clusters.
 */
export function clusteredMean(clusters: readonly (readonly number[])[]): Estimate | null {
  const means = clusters.filter((cluster) => cluster.length > 0).map(meanOf);
  if (means.length === 0) return null;
  const mean = meanOf(means);
  const squares = means.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const tasks = means.length;
  if (areEqual(means)) return { mean, ...wilson(mean, tasks), standardError: null, tasks };
  const standardError = Math.sqrt(squares / (tasks * (tasks - 1)));
  const half = tFactor(tasks - 1) * standardError;
  return { mean, low: Math.max(0, mean - half), high: Math.min(1, mean + half), standardError, tasks };
}

/** Wilson's score interval for the share p of n observations. */
export function wilson(p: number, n: number): { readonly low: number; readonly high: number } {
  const square = zFactor ** 2;
  const centre = (p + square / (2 * n)) / (1 + square / n);
  const half = (zFactor / (1 + square / n)) * Math.sqrt((p * (1 - p)) / n + square / (4 * n * n));
  // Rounding may move a bound past the value that it bounds.
  return { low: Math.max(0, Math.min(p, centre - half)), high: Math.min(1, Math.max(p, centre + half)) };
}
