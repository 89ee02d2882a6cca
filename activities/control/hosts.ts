import { ApplicationFailure, Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** The value of `temporal.api.enums.v1.TaskQueueType` for activities. */
const activityQueue = 2;
/** The time since the last poll within which a host counts as alive. A worker polls at least once a minute; the server lists a poller for five minutes. */
const aliveWithinMs = 90_000;
/**
 * The time for which a host must show no sign of life before it counts as lost. After a restart of the whole machine,
 * queued stages have waited too long at once, and the server knows no poller yet; the host removes what is left of ended
 * rollouts before it polls.
 */
const lostAfterMs = 180_000;

/** Creates the activity that reports whether a worker polls a host's queue. */
export function createHostActivities(client: Client, limits = { lostAfterMs }): Pick<ControlActivities, 'inspectHost'> {
  return {
    inspectHost: ({ host }) =>
      atBoundary(async () => {
        const { pollers } = await client.connection.workflowService.describeTaskQueue({
          namespace: client.options.namespace,
          taskQueue: { name: hostQueue(host) },
          taskQueueType: activityQueue,
        });
        const times = (pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000);
        const lastSeenMs = times.length === 0 ? null : Math.max(...times);
        const alive = lastSeenMs !== null && Date.now() - lastSeenMs < aliveWithinMs;
        const askedForMs = Date.now() - Context.current().info.scheduledTimestampMs;
        if (alive || askedForMs >= limits.lostAfterMs) return { alive, lastSeenMs };
        throw ApplicationFailure.retryable(
          `no worker of host ${host} polls its queue; it counts as lost after ${limits.lostAfterMs / 1000} s`,
        );
      }),
  };
}
