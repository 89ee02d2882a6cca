import { Context } from '@temporalio/activity';
import type { HeartbeatThread, WatchedAttempt } from '../infra/temporal/heartbeat-thread.ts';

/** The delay of the first heartbeat. A heartbeat is a write at the server, and work of less than a second needs none. */
const firstBeatMs = 1000;

/** The functions that send a heartbeat at once, by the workflow run whose activity attempts they belong to. */
const senders = new Map<string, Set<() => void>>();

/**
 * Sends a heartbeat for each activity attempt of a workflow run in this process. Their answers say which of them were
 * cancelled.
 */
export function sendHeartbeatsNow(workflowRun: string): void {
  for (const send of senders.get(workflowRun) ?? []) send();
}

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
  /** The details that were sent last, or those of the activity attempt before. */
  readonly latest: unknown;
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
  const forget = heartbeatTimeoutMs ? rememberSender(context, send) : () => {};
  return {
    get latest() {
      return latest;
    },
    report(details) {
      latest = details;
      watched.get(context)?.report(details);
      send();
    },
    stop() {
      clearTimeout(timer);
      forget();
    },
  };
}

/** Makes `sendHeartbeatsNow` find an activity attempt, until the returned function is called. */
function rememberSender({ info }: Context, send: () => void): () => void {
  const run = info.workflowExecution?.runId;
  if (run === undefined) return () => {};
  const ofRun = senders.get(run) ?? new Set();
  senders.set(run, ofRun.add(send));
  return () => {
    ofRun.delete(send);
    if (ofRun.size === 0 && senders.get(run) === ofRun) senders.delete(run);
  };
}
