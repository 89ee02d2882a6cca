import { ApplicationFailure, Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
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
/** The number of hosts that the server is asked about at once. */
const askedAtOnce = 16;

export interface HostActivitiesDependencies {
  readonly client: Client;
  /** Returns the names of all hosts that the stack has had. */
  knownHosts(): Promise<readonly string[]>;
}

/** Creates the activities that report which hosts have a worker that polls. */
export function createHostActivities(
  { client, knownHosts }: HostActivitiesDependencies,
  limits = { lostAfterMs },
): Pick<ControlActivities, 'inspectHost' | 'liveHosts'> {
  const look = async (host: string): Promise<{ alive: boolean; lastSeenMs: number | null }> => {
    const { pollers } = await client.connection.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: hostQueue(host) },
      taskQueueType: activityQueue,
    });
    const times = (pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000);
    const lastSeenMs = times.length === 0 ? null : Math.max(...times);
    return { alive: lastSeenMs !== null && Date.now() - lastSeenMs < aliveWithinMs, lastSeenMs };
  };
  return {
    inspectHost: ({ host }) =>
      atBoundary(async () => {
        const seen = await look(host);
        const askedForMs = Date.now() - Context.current().info.scheduledTimestampMs;
        if (seen.alive || askedForMs >= limits.lostAfterMs) return seen;
        throw ApplicationFailure.retryable(
          `no worker of host ${host} polls its queue; it counts as lost after ${limits.lostAfterMs / 1000} s`,
        );
      }),
    liveHosts: () =>
      atBoundary(async () => {
        const limit = pLimit(askedAtOnce);
        const known = await knownHosts();
        const alive = await Promise.all(known.map((host) => limit(async () => (await look(host)).alive)));
        return { hosts: known.filter((_, index) => alive[index]) };
      }),
  };
}
