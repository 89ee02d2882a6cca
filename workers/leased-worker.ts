import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkerOptions } from '@temporalio/worker';
import { startHeartbeats } from '../activities/heartbeats.ts';
import type { Lease } from '../infra/hosts/lease.ts';
import { errorMessage } from '../workflows/contracts/error-message.ts';

/** Makes the stages of a host wait for its lease, without which it may neither make, change nor remove anything. */
export const whileLeased = (lease: Pick<Lease, 'now' | 'valid'>, options: WorkerOptions): WorkerOptions => ({
  ...options,
  interceptors: {
    ...options.interceptors,
    activity: [
      () => ({
        inbound: {
          execute: async (input, next) => {
            if (lease.now().state !== 'valid') await untilValid(lease);
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
