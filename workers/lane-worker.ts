import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkerOptions } from '@temporalio/worker';
import { startHeartbeats } from '../activities/heartbeats.ts';
import type { Lane, LaneQueue } from '../activities/host/lane.ts';
import type { FailureType } from '../workflows/contracts/failures.ts';
import { type SlotSource, slotTuner } from './slot-tuner.ts';

/** Failures of a stage that ran out of time, or whose sandbox or container engine did not answer in time. */
const overloadTypes: readonly FailureType[] = ['SandboxUnavailable', 'EvaluationTimedOut'];

interface QueueOfLane {
  /** Default: the lane's first one. */
  readonly queue?: LaneQueue;
  /** Default: the queue's. */
  readonly slots?: SlotSource;
}

/** Makes a worker take from a task queue only what the lane has a place for, and at most what `slots` allow. */
export function inLane(
  lane: Lane,
  { queue = lane, slots = queue }: QueueOfLane = {},
): Pick<WorkerOptions, 'tuner' | 'interceptors'> {
  return {
    tuner: slotTuner(slots),
    interceptors: {
      activity: [
        () => ({
          inbound: {
            execute: async (input, next) => {
              const end = await waiting((signal) => queue.begin(signal));
              try {
                return await lane.run(() => next(input), isOverload);
              } finally {
                end();
              }
            },
          },
        }),
      ],
    },
  };
}

/** Waits for a place in a lane, and heartbeats meanwhile. */
async function waiting<Result>(forPlace: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const context = Context.current();
  const heartbeats = startHeartbeats(context);
  try {
    return await forPlace(context.cancellationSignal);
  } finally {
    heartbeats.stop();
  }
}

/** Whether an activity attempt failed because it took too long, or because the server no longer waited for it. */
function isOverload(error: unknown): boolean {
  const { cancellationDetails } = Context.current();
  if (cancellationDetails?.timedOut || cancellationDetails?.notFound) return true;
  return error instanceof ApplicationFailure && overloadTypes.some((type) => type === error.type);
}
