import { TemperFailure } from '../contracts/failures.ts';
import { weightedMean } from './mean.ts';
import { asReward } from './rounding.ts';

/**
 * The reward of tests that score several things by name (a `reward.json`): Σ weightᵢ × scoreᵢ / Σ weightᵢ over the names
 * that have a weight; scores without a weight are for people to read. The reward is in [0, 1], as every score is, and 1 if
 * every score with a weight is 1.
 *
 * Throws InvalidReward if a weighted score is missing or outside [0, 1], and InvalidInput if the weights are invalid.
 * Neither is caused by the policy, so neither may become a 0.
 */
export function weightedReward(
  scores: Readonly<Record<string, number>>,
  weights: Readonly<Record<string, number>>,
): number {
  const entries = Object.entries(weights);
  const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
  const usable = entries.every(([, weight]) => Number.isFinite(weight) && weight >= 0);
  if (!usable || !Number.isFinite(total) || total <= 0) {
    const got = JSON.stringify(weights).slice(0, 200);
    throw new TemperFailure('InvalidInput', `weights: expected finite numbers from 0, one above it, got ${got}`);
  }
  return weightedMean(entries.map(([name, weight]) => [scoreOf(scores, name), weight]));
}

function scoreOf(scores: Readonly<Record<string, number>>, name: string): number {
  const written = Object.hasOwn(scores, name) ? scores[name] : undefined;
  const score = asReward(written);
  if (score !== null) return score;
  const got = written === undefined ? `none among ${Object.keys(scores).slice(0, 10).join(', ')}` : String(written);
  throw new TemperFailure('InvalidReward', `score ${name}: expected a number from 0 to 1, got ${got}`);
}
