import { TemperFailure } from '../../workflows/contracts/failures.ts';

/**
 * Gives up on an effect that takes longer than it may: that is the host's failure. For limits that begin later than their
 * activity does, behind the wait for an image.
 */
export async function within<Result>(
  limitMs: number,
  what: string,
  effect: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const limit = AbortSignal.timeout(limitMs);
  const late = new TemperFailure('SandboxUnavailable', `${what}: expected an end within ${limitMs / 1000} s, got none`);
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
