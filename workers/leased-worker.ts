import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkerOptions } from '@temporalio/worker';
import { startHeartbeats } from '../activities/heartbeats.ts';
import { declined } from '../activities/host/elsewhere.ts';
import type { Lease } from '../infra/hosts/lease.ts';
import { errorMessage } from '../workflows/contracts/error-message.ts';
import { evaluationQueue, imageQueue } from '../workflows/contracts/queues.ts';

/** The queues from which any host takes work. */
const commonQueues: readonly string[] = [imageQueue, evaluationQueue];

/**
 * Makes the stages of a host wait for its lease, without which it may neither make, change nor remove anything. Those that other
 * hosts may take from the same queue are declined: a host that is cut off from the store alone would keep them until it is back.
 */
export const whileLeased = (lease: Pick<Lease, 'now' | 'valid'>, options: WorkerOptions): WorkerOptions => ({
  ...options,
  interceptors: {
    ...options.interceptors,
    activity: [
      () => ({
        inbound: {
          execute: async (input, next) => {
            if (lease.now().state === 'valid') return next(input);
            if (commonQueues.includes(options.taskQueue ?? ''))
              throw declined('the lease of the host ran out; the stage waits for another one');
            await untilValid(lease);
            return next(input);
          },
        },
      }),
      ...(options.interceptors?.activity ?? []),
    ],
  },
});

async function untilValid(lease: Pick<Lease, 'valid'>): Promise<void> {
  const context = Context.current();
  const heartbeats = startHeartbeats(context);
  try {
    await lease.valid(context.cancellationSignal);
  } catch (error) {
    if (context.cancellationSignal.aborted) throw context.cancellationSignal.reason;
    throw ApplicationFailure.retryable(errorMessage(error), 'HostFenced');
  } finally {
    heartbeats.stop();
  }
}
