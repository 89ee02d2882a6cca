import type { Info } from '@temporalio/activity';

/** The parts of an activity attempt that its retry depends on. */
export type RetriedAttempt = Pick<Info, 'attempt' | 'retryPolicy'>;

/** The longest interval that the server takes by default, in first intervals. */
const defaultLongest = 100;

const between = (low: number, high: number, random: () => number): number => low + (high - low) * random();

/** Returns a duration that differs from `ms` by up to a quarter, so that what failed together is not retried together. */
export const spread = (ms: number, random: () => number = Math.random): number =>
  Math.round(ms * between(0.75, 1.25, random));

/** Returns a duration that is up to a quarter longer than `ms`. */
export const spreadAbove = (ms: number, random: () => number = Math.random): number =>
  Math.round(ms * between(1, 1.25, random));

/**
 * Returns the pause before the next activity attempt: that of the retry policy, which doubles with each, times a random
 * factor from 0.5 to 1.5. The policy's longest interval is never exceeded, and pauses of that length are spread below it.
 * Without a policy, the server decides.
 */
export function retryDelayMs(
  { attempt, retryPolicy }: RetriedAttempt,
  random: () => number = Math.random,
): number | undefined {
  const { initialInterval, maximumInterval, backoffCoefficient = 2 } = retryPolicy ?? {};
  if (typeof initialInterval !== 'number') return undefined;
  const longest = typeof maximumInterval === 'number' ? maximumInterval : initialInterval * defaultLongest;
  const pause = initialInterval * backoffCoefficient ** (attempt - 1) * between(0.5, 1.5, random);
  return Math.round(pause < longest * 0.75 ? pause : Math.min(pause, longest * between(0.75, 1, random)));
}
