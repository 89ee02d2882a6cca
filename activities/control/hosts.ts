import type { Client } from '@temporalio/client';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** The value of `temporal.api.enums.v1.TaskQueueType` for activities. */
const activityQueue = 2;
/** The time since the last poll within which a host counts as alive. A worker polls at least once a minute; the server lists a poller for five minutes. */
const aliveWithinMs = 90_000;

/** Creates the activity that reports whether a worker polls a host's queue. */
export function createHostActivities(client: Client): Pick<ControlActivities, 'inspectHost'> {
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
        return { alive: lastSeenMs !== null && Date.now() - lastSeenMs < aliveWithinMs, lastSeenMs };
      }),
  };
}
