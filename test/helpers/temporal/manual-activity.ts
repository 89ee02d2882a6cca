import { randomUUID } from 'node:crypto';
import { defaultPayloadConverter } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import { until } from '../until.ts';
import { nextTask } from './manual-worker.ts';
import type { TestServer } from './temporal.ts';

/** Values of `temporal.api.enums.v1.CommandType`. */
const scheduleActivity = 1;
const requestCancel = 2;
/** The values of `temporal.api.enums.v1.EventType` with which an activity ends. */
const ends: Readonly<Record<number, string>> = { 12: 'completed', 13: 'failed', 14: 'timed out', 16: 'cancelled' };
/** A value of `temporal.api.enums.v1.PendingActivityState`. */
const startedState = 2;
const endMs = 240_000;

export interface ActivityToRun {
  readonly type: string;
  readonly taskQueue: string;
  readonly heartbeatTimeoutMs: number;
  readonly retry?: { readonly initialMs: number; readonly maximumMs: number; readonly attempts: number };
}

export interface ActivityEnd {
  /** `completed`, `failed`, `timed out` or `cancelled`. */
  readonly how: string;
  /** The number of the last activity attempt. */
  readonly attempt: number;
  readonly result: unknown;
  /** The type of the earlier attempt's failure, or its message if it has none. */
  readonly earlier: string | null;
}

/** An activity of a workflow that the test plays itself, by answering its workflow tasks. */
export interface ManualActivity {
  readonly workflowId: string;
  cancel(): Promise<void>;
  /**
   * The server's view of the activity while it has not ended; `started` is the number of the attempt that runs, `retryMs` the
   * pause that followed the last one that failed.
   */
  pending(): Promise<{ readonly started: number; readonly details: unknown; readonly retryMs: number | null }>;
  /** Whether the attempt that runs has sent a heartbeat. */
  beat(): Promise<boolean>;
  /** Resolves when the workflow knows that the activity has ended. */
  end(): Promise<ActivityEnd>;
}

/** Makes a workflow schedule an activity. */
export async function startActivity(server: TestServer, activity: ActivityToRun): Promise<ManualActivity> {
  const { client, connection, namespace } = server;
  const service = connection.workflowService;
  const workflowId = `activity-${randomUUID()}`;
  const handle = await client.workflow.start('manual', { workflowId, taskQueue: workflowId });
  const answer = async (command: object): Promise<void> => {
    const { taskToken } = await nextTask(server, workflowId);
    await service.respondWorkflowTaskCompleted({ namespace, taskToken, commands: [command] });
  };
  const events = async () => (await handle.fetchHistory()).events ?? [];
  const { type, taskQueue, heartbeatTimeoutMs, retry } = activity;
  await answer({
    commandType: scheduleActivity,
    scheduleActivityTaskCommandAttributes: {
      activityId: '1',
      activityType: { name: type },
      taskQueue: { name: taskQueue },
      startToCloseTimeout: msToTs('10 minutes'),
      heartbeatTimeout: msToTs(heartbeatTimeoutMs),
      retryPolicy: {
        initialInterval: msToTs(retry?.initialMs ?? 100),
        maximumInterval: msToTs(retry?.maximumMs ?? 100),
        backoffCoefficient: 2,
        maximumAttempts: retry?.attempts ?? 3,
      },
    },
  });
  return {
    workflowId,
    async cancel() {
      const scheduled = (await events()).find((event) => event.activityTaskScheduledEventAttributes);
      await handle.signal('cancel');
      await answer({
        commandType: requestCancel,
        requestCancelActivityTaskCommandAttributes: { scheduledEventId: scheduled?.eventId },
      });
    },
    async pending() {
      const [activity] = (await handle.describe()).raw.pendingActivities ?? [];
      const [details] = activity?.heartbeatDetails?.payloads ?? [];
      // While the first attempt waits for a worker, the server shows the interval of the policy.
      const interval = (activity?.attempt ?? 1) > 1 ? activity?.currentRetryInterval : null;
      return {
        started: Number(activity?.state) === startedState ? (activity?.attempt ?? 0) : 0,
        details: details == null ? undefined : defaultPayloadConverter.fromPayload(details),
        retryMs: interval == null ? null : Number(interval.seconds ?? 0) * 1000 + (interval.nanos ?? 0) / 1e6,
      };
    },
    async beat() {
      const [activity] = (await handle.describe()).raw.pendingActivities ?? [];
      return activity?.lastHeartbeatTime != null;
    },
    end: () =>
      until(async () => {
        const all = await events();
        const last = all.find(({ eventType }) => Number(eventType) in ends);
        if (last === undefined) return false;
        const started = all.find((event) => event.activityTaskStartedEventAttributes);
        const { attempt, lastFailure } = started?.activityTaskStartedEventAttributes ?? {};
        const [result] = last.activityTaskCompletedEventAttributes?.result?.payloads ?? [];
        return {
          how: ends[Number(last.eventType)] ?? '',
          attempt: attempt ?? 0,
          result: result == null ? undefined : defaultPayloadConverter.fromPayload(result),
          earlier: lastFailure?.applicationFailureInfo?.type ?? lastFailure?.message ?? null,
        };
      }, endMs),
  };
}
