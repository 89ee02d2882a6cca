import { Context } from '@temporalio/activity';
import type { HeartbeatThread, WatchedAttempt } from '../infra/temporal/heartbeat-thread.ts';

/** The delay of the first heartbeat. A heartbeat is a write at the server, and work of less than a second needs none. */
const firstBeatMs = 1000;

const watched = new WeakMap<Context, WatchedAttempt>();

/**
 * Runs an activity attempt, known from its first moment to the thread that sends its heartbeats while the event loop is
 * busy.
 */
export async function whileWatched<Result>(
  thread: Pick<HeartbeatThread, 'watch'>,
  run: () => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  const { taskToken, heartbeatTimeoutMs, heartbeatDetails } = context.info;
  if (!heartbeatTimeoutMs) return run();
  const attempt = thread.watch({ taskToken, heartbeatTimeoutMs, details: heartbeatDetails });
  watched.set(context, attempt);
  try {
    return await run();
  } finally {
    attempt.end();
  }
}

/** The heartbeats of an activity attempt while its event loop has time for them. */
export interface Heartbeats {
  /** Sends these details now, and with every later heartbeat. */
  report(details: unknown): void;
  stop(): void;
}

/** Starts to send heartbeats from a timer. Until there are new details, they keep those of the activity attempt before. */
export function startHeartbeats(context: Context): Heartbeats {
  const { heartbeatTimeoutMs } = context.info;
  let latest: unknown = context.info.heartbeatDetails;
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => context.heartbeat(latest);
  if (heartbeatTimeoutMs) {
    timer = setTimeout(function again() {
      send();
      timer = setTimeout(again, heartbeatTimeoutMs / 3);
    }, firstBeatMs);
  }
  return {
    report(details) {
      latest = details;
      watched.get(context)?.report(details);
      send();
    },
    stop: () => clearTimeout(timer),
  };
}
