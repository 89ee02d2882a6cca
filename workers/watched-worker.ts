import { Context } from '@temporalio/activity';
import type { WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { whileWatched } from '../activities/heartbeats.ts';
import type { HeartbeatThread } from '../infra/temporal/heartbeat-thread.ts';
import type { KeptAttempts } from '../infra/temporal/kept-attempts.ts';

/** The heartbeat timeout from which the death of a worker would be noticed too late by the missing heartbeats alone. */
const longHeartbeatMs = 60_000;

/** The parts of a worker process by which its attempts are kept. */
export interface Keeping {
  readonly kept: KeptAttempts;
  readonly log: Pick<Logger, 'warn'>;
}

/** Makes the thread know every activity attempt of a worker, the time in which it waits for a lane included. */
export const watchedBy = (heartbeats: HeartbeatThread, options: WorkerOptions): WorkerOptions =>
  intercepted(options, (run) => whileWatched(heartbeats, run));

/** Keeps the activity attempts whose heartbeats are rare, so that the next process can give them back if this one is killed. */
export const keptBy = ({ kept, log }: Keeping, options: WorkerOptions): WorkerOptions =>
  intercepted(options, async (run) => {
    const { taskToken, heartbeatTimeoutMs = 0 } = Context.current().info;
    if (heartbeatTimeoutMs < longHeartbeatMs) return run();
    const forget = await kept.keep(taskToken).catch((error: unknown) => {
      log.warn({ error }, 'could not keep an activity attempt; if this process is killed, that is noticed late');
      return async () => {};
    });
    return run().finally(forget);
  });

function intercepted(options: WorkerOptions, around: (run: () => Promise<unknown>) => Promise<unknown>): WorkerOptions {
  const activity = options.interceptors?.activity ?? [];
  return {
    ...options,
    interceptors: {
      ...options.interceptors,
      activity: [() => ({ inbound: { execute: (input, next) => around(() => next(input)) } }), ...activity],
    },
  };
}
