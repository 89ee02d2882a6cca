import { ApplicationFailure, CancelledFailure, Context, type Info } from '@temporalio/activity';
import { failureKinds, TemperFailure } from '../workflows/contracts/failures.ts';
import { ThrottledFailure } from '../workflows/contracts/throttled-failure.ts';
import { activityKey, type Effect, type Part, takePart } from './effects.ts';
import { startHeartbeats } from './heartbeats.ts';
import { retryDelayMs, spreadAbove } from './retry-delay.ts';

/** Stands for a random number, where the longest pause before a retry is asked for. */
const longestPause = (): number => 1;

/** The reason with which an effect's signal aborts if the workflow has cancelled the activity. */
class CancelRequested extends CancelledFailure {}

/**
 * Runs an effect on behalf of a workflow: heartbeats while it runs, passes it the signal that ends it, and attributes its
 * failure, once. Nothing else in activities/ classifies errors. The details that the effect reports are sent with the
 * heartbeats, and are visible at the pending activity; a failure has the last ones.
 */
export function atBoundary<Result>(effect: Effect<Result>): Promise<Result> {
  return attend(Context.current(), effect, Symbol('effect of one activity attempt'));
}

/**
 * Runs an effect as `atBoundary` does, for stages whose work is worth keeping: an activity attempt that the server has
 * given up leaves the effect running, and the next one in this process joins it. Only for effects that may run a little
 * longer than their activity.
 */
export function joinAtBoundary<Result>(effect: Effect<Result>): Promise<Result> {
  const context = Context.current();
  return attend(context, effect, activityKey(context.info));
}

/**
 * Whether an effect's signal aborted because a cancel was requested. For every other reason to stop (shutdown, a lost
 * heartbeat, a reset) an activity detaches: it leaves running what runs, and the next activity attempt resumes it.
 */
export function cancelRequested(signal: AbortSignal): boolean {
  return signal.reason instanceof CancelRequested;
}

async function attend<Result>(context: Context, effect: Effect<Result>, key: string | symbol): Promise<Result> {
  const heartbeats = startHeartbeats(context);
  // Requests of a Temporal client end with the activity attempt, unless they belong to an effect that may outlive it.
  const run: Effect<Result> = (signal, report) => context.client.withAbortSignal(signal, () => effect(signal, report));
  const part = takePart(key, run, heartbeats.report);
  const left = followEnd(context, part, typeof key === 'string');
  try {
    return await Promise.race([part.result, left]);
  } catch (error) {
    throw attribute(error, part.signal, context.info, heartbeats.latest);
  } finally {
    heartbeats.stop();
  }
}

/**
 * Ends the effect when the activity attempt is to end. With `leaves`, an attempt that was given up leaves its effect to the
 * next one instead, and the promise rejects.
 */
function followEnd(context: Context, part: Part<unknown>, leaves: boolean): Promise<never> {
  const { cancellationSignal, info } = context;
  const left = Promise.withResolvers<never>();
  left.promise.catch(() => undefined); // it may reject when the effect has just ended
  const end = (): void => {
    const { reason } = cancellationSignal;
    const { cancelRequested: cancelled, timedOut, notFound } = context.cancellationDetails ?? {};
    if (cancelled) part.end(new CancelRequested('CANCELLED'));
    else if (leaves && (timedOut || notFound)) {
      // The server may notice a heartbeat timeout later than the SDK; then comes the pause of the retry policy, and the
      // next activity attempt has to be taken from its queue.
      part.leave((retryDelayMs(info, longestPause) ?? 0) + 2 * (info.heartbeatTimeoutMs ?? 0));
      left.reject(reason);
    } else part.end(reason);
  };
  if (cancellationSignal.aborted) end();
  else cancellationSignal.addEventListener('abort', end, { once: true });
  return left.promise;
}

function attribute(error: unknown, signal: AbortSignal, info: Info, latest: unknown): unknown {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  const details = latest === undefined ? [] : [latest];
  if (signal.aborted) {
    if (signal.reason instanceof CancelRequested) return new CancelledFailure(signal.reason.message, details);
    return signal.reason instanceof Error ? signal.reason : new CancelledFailure(String(signal.reason));
  }
  const cause = error instanceof Error ? error : new Error(String(error));
  const type = cause instanceof TemperFailure ? cause.type : 'Internal';
  const { retryable } = failureKinds[type];
  const delayMs = retryable ? pauseMs(cause, info) : undefined;
  return ApplicationFailure.create({
    type,
    message: cause.message,
    nonRetryable: !retryable,
    details,
    ...(delayMs !== undefined && { nextRetryDelay: delayMs }),
    cause,
  });
}

/** Returns the pause before the next activity attempt, which is never shorter than what was asked for. */
function pauseMs(cause: Error, info: Info): number | undefined {
  const ownMs = retryDelayMs(info);
  if (!(cause instanceof ThrottledFailure) || cause.retryAfterMs === null) return ownMs;
  return Math.max(ownMs ?? 0, spreadAbove(cause.retryAfterMs));
}
