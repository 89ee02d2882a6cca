import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import { failureKinds, TemperFailure } from '../workflows/contracts/failures.ts';

/**
 * Runs an effect on behalf of a workflow: heartbeats from a timer while it runs, passes it the signal that ends it, and
 * attributes its failure, once. Nothing else in activities/ classifies errors. The details that the effect reports are sent
 * with the heartbeats, and are visible at the pending activity.
 */
export async function atBoundary<Result>(
  effect: (signal: AbortSignal, report: (details: unknown) => void) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  const heartbeat = startHeartbeat(context);
  try {
    return await effect(context.cancellationSignal, heartbeat.report);
  } catch (error) {
    throw attribute(error, context.cancellationSignal);
  } finally {
    heartbeat.stop();
  }
}

/** The delay of the first heartbeat. A heartbeat is a write at the server, and work of less than a second needs none. */
const firstBeatMs = 1000;

function startHeartbeat(context: Context) {
  const { heartbeatTimeoutMs } = context.info;
  let latest: unknown;
  const send = () => context.heartbeat(latest);
  const report = (details: unknown): void => {
    latest = details;
    send();
  };
  if (heartbeatTimeoutMs === undefined) return { report, stop: () => undefined };
  let timer = setTimeout(function again() {
    send();
    timer = setTimeout(again, heartbeatTimeoutMs / 3);
  }, firstBeatMs);
  return { report, stop: () => clearTimeout(timer) };
}

/**
 * Whether a cancel was requested. For every other reason to stop (shutdown, a lost heartbeat, a reset) an activity detaches:
 * it leaves running what runs, and the next activity attempt resumes it.
 */
export function cancelRequested(): boolean {
  return Context.current().cancellationDetails?.cancelRequested ?? false;
}

function attribute(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  if (signal.aborted)
    return signal.reason instanceof Error ? signal.reason : new CancelledFailure(String(signal.reason));
  const cause = error instanceof Error ? error : new Error(String(error));
  const type = cause instanceof TemperFailure ? cause.type : 'Internal';
  return ApplicationFailure.create({
    type,
    message: cause.message,
    nonRetryable: !failureKinds[type].retryable,
    cause,
  });
}
