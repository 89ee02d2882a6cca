import type { WorkerOptions } from '@temporalio/worker';
import { whileWatched } from '../activities/heartbeats.ts';
import type { HeartbeatThread } from '../infra/temporal/heartbeat-thread.ts';

/** Makes the thread know every activity attempt of a worker, the time in which it waits for a lane included. */
export function watchedBy(heartbeats: HeartbeatThread, options: WorkerOptions): WorkerOptions {
  const activity = options.interceptors?.activity ?? [];
  return {
    ...options,
    interceptors: {
      ...options.interceptors,
      activity: [
        () => ({ inbound: { execute: (input, next) => whileWatched(heartbeats, () => next(input)) } }),
        ...activity,
      ],
    },
  };
}
