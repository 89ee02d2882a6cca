import type { Client } from '@temporalio/client';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

const activityQueue = 2;
/** The server forgets a poller after five minutes; a worker polls at least once a minute. */
const aliveWithinMs = 90_000;

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
