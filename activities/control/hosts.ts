import { ApplicationFailure, Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { z } from 'zod';
import { declareLost } from '../../infra/hosts/orders.ts';
import { tokenOf } from '../../infra/hosts/token.ts';
import type { HostRecord, Hosts } from '../../infra/store/hosts.ts';
import { lastPolls } from '../../infra/temporal/pollers.ts';
import { tellHostLost } from '../../infra/temporal/tell-host-lost.ts';
import {
  captureQueue,
  cleanUpQueue,
  hostQueue,
  ownEvaluationQueue,
  provisionQueue,
} from '../../workflows/contracts/queues.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';
import { spread } from '../retry-delay.ts';

/**
 * The time since the last poll within which a host counts as alive. A worker polls at least once a minute; the server
 * lists a poller for five minutes.
 */
const aliveWithinMs = 90_000;
/** The number of looks at a host until it counts as lost, and the most of one inspection. The retry policy allows for more. */
const looks = 10;
const mostLooks = 18;
/** The number of hosts that the server is asked about at once. */
const askedAtOnce = 16;

export interface HostInspection {
  readonly client: Client;
  readonly hosts: Pick<Hosts, 'names' | 'find' | 'update'>;
  /**
   * The time for which a host must show no sign of life before it counts as lost. After a restart of the whole machine, queued
   * stages have waited too long at once, and the server knows no poller yet; the host removes what is left of ended rollouts
   * before it polls.
   */
  readonly lostAfterMs: number;
}

/** The view of the attempts of one inspection so far. Times are the server's, so that no two clocks are compared. */
const observation = z.object({
  lastSeenMs: z.number().nullable(),
  unseenSinceMs: z.number(),
  renewal: z.string().nullable(),
  /** Null until an attempt has found the renewal that the one before it found. */
  unrenewedSinceMs: z.number().nullable(),
});
type Observation = z.output<typeof observation>;

/**
 * Creates the activities that find out which hosts are alive. A host that is not is declared lost before `inspectHost` says so,
 * and its lease has run out by then: whatever still runs there does nothing more.
 */
export function createHostActivities(inspection: HostInspection): Pick<ControlActivities, 'inspectHost' | 'liveHosts'> {
  const told = new Set<string>();
  /** Tells the host's other rollouts, which would each find out by a time-out of its own. */
  const tell = async (host: string, generation: number): Promise<void> => {
    const token = tokenOf(host, generation);
    if (told.has(token)) return;
    told.add(token);
    await tellHostLost(inspection.client, host, generation).catch((error: unknown) => {
      told.delete(token);
      throw error;
    });
  };
  const inspect = async (host: string, report: (seen: Observation) => void) => {
    const lastSeenMs = await lastSign(inspection.client, host);
    if (hasPolled(lastSeenMs)) return { alive: true, lastSeenMs };
    await tell(host, await lostGeneration(inspection, { host, lastSeenMs }, report));
    return { alive: false, lastSeenMs };
  };
  return {
    inspectHost: ({ host }) =>
      atBoundary(async (_signal, report) => {
        try {
          return await inspect(host, report);
        } catch (error) {
          // Not knowing is no proof: the stage is queued again, and the next inspection continues from the host's record.
          if (Context.current().info.attempt < mostLooks) throw error;
          return { alive: true, lastSeenMs: null };
        }
      }),
    liveHosts: () =>
      atBoundary(async () => {
        const limit = pLimit(askedAtOnce);
        const known = await inspection.hosts.names();
        const polls = await Promise.all(
          known.map((host) => limit(async () => hasPolled(await lastPoll(inspection.client, host)))),
        );
        return { hosts: known.filter((_, index) => polls[index]) };
      }),
  };
}

interface Look {
  readonly host: string;
  readonly lastSeenMs: number | null;
}

/** Declares a host lost that polls no more, and returns the generation that is. Throws until that is certain. */
async function lostGeneration(
  { hosts, lostAfterMs }: HostInspection,
  { host, lastSeenMs }: Look,
  report: (seen: Observation) => void,
): Promise<number> {
  const record = (await hosts.find(host))?.record ?? null;
  const nowMs = serverNowMs();
  const seen = observe(lastSeenMs, record);
  report(seen);
  const leaseMs = record?.leaseMs ?? 0;
  const later = (reason: string): ApplicationFailure =>
    ApplicationFailure.create({
      message: reason,
      nextRetryDelay: spread(Math.max(100, lostAfterMs / looks, leaseMs / looks)),
    });
  if (record === null || record.lost === null) {
    const limit = `${lostAfterMs / 1000} s`;
    if (nowMs - seen.unseenSinceMs < lostAfterMs) {
      throw later(`no worker of host ${host} polls its queues; it counts as lost after ${limit}`);
    }
    const reason = `no worker has polled its queues for ${limit}`;
    if (record !== null) {
      const { generation, renewedAt } = record;
      const after = await declareLost(hosts, host, { generation, reason, renewedAt });
      if (after?.lost === null) throw later(`host ${host} has just renewed its record`);
    }
  }
  if (leaseMs > 0 && (seen.unrenewedSinceMs === null || nowMs - seen.unrenewedSinceMs < leaseMs)) {
    throw later(`host ${host} was declared lost, and may still act until its lease of ${leaseMs / 1000} s is over`);
  }
  return record?.generation ?? 1;
}

/** The time at which this attempt was queued, by the clock that also stamps polls. */
const serverNowMs = (): number => Context.current().info.currentAttemptScheduledTimestampMs;

/** Whether a worker that polled then counts as alive now. */
const hasPolled = (lastSeenMs: number | null): boolean =>
  lastSeenMs !== null && serverNowMs() - lastSeenMs < aliveWithinMs;

/** Returns the time at which a worker polled a queue last, by default the main one of a host; null if the server remembers none. */
async function lastPoll(client: Client, host: string, queue = hostQueue(host)): Promise<number | null> {
  const polls = await lastPolls(client, queue, 'activity');
  return polls.length === 0 ? null : Math.max(...polls.map(({ atMs }) => atMs));
}

/** The queues of a host beside the main one, which the same process polls. */
const furtherQueues = [cleanUpQueue, provisionQueue, captureQueue, ownEvaluationQueue] as const;

/**
 * Returns the time at which a worker polled any queue of the host last. One that is too busy for more work of one kind still polls
 * for others. Renewals of the lease are no sign of it, since the gateways make them, too.
 */
async function lastSign(client: Client, host: string): Promise<number | null> {
  const atMs = await lastPoll(client, host);
  if (hasPolled(atMs)) return atMs;
  const further = await Promise.all(furtherQueues.map((queueOf) => lastPoll(client, host, queueOf(host))));
  const known = [atMs, ...further].filter((one) => one !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Adds what this attempt sees to what those before it have seen. */
function observe(lastSeenMs: number | null, record: HostRecord | null): Observation {
  const nowMs = serverNowMs();
  const before = observation.safeParse(Context.current().info.heartbeatDetails).data;
  const renewal = record === null ? null : `${record.generation} ${record.renewedAt}`;
  // A poller that the server has forgotten did not poll again.
  const unseen = before !== undefined && (lastSeenMs === null || lastSeenMs === before.lastSeenMs);
  const unrenewed = before !== undefined && renewal === before.renewal;
  return {
    lastSeenMs,
    unseenSinceMs: unseen ? before.unseenSinceMs : nowMs,
    renewal,
    // A host may have renewed its record after this attempt was queued and before it read the record. The next attempt is queued
    // later than that, so time is counted from there.
    unrenewedSinceMs: unrenewed ? (before.unrenewedSinceMs ?? nowMs) : null,
  };
}
