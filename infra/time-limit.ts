import { setTimeout as sleep } from 'node:timers/promises';
import type { TemperFailure } from '../workflows/contracts/failures.ts';

/**
 * Runs an effect for at most `limitMs`, then aborts it and throws `late`. For limits that begin later than their activity
 * does, after the wait for an image.
 */
export async function withTimeLimit<Result>(
  { limitMs, late }: { readonly limitMs: number; readonly late: TemperFailure },
  effect: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const limit = AbortSignal.timeout(limitMs);
  const expired = Promise.withResolvers<never>();
  const expire = (): void => expired.reject(late);
  limit.addEventListener('abort', expire, { once: true });
  try {
    return await Promise.race([effect(AbortSignal.any([signal, limit])), expired.promise]);
  } catch (error) {
    throw limit.aborted && !signal.aborted ? late : error;
  } finally {
    limit.removeEventListener('abort', expire);
  }
}

/** Waits until the work is done or the time is over. */
export async function settleWithin(ms: number, work: Promise<unknown>): Promise<void> {
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal }).catch(() => {});
  await Promise.race([work, late]);
  timeout.abort();
}
