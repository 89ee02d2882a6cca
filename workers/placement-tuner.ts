import type { ActivitySlotInfo, CustomSlotSupplier, WorkerOptions } from '@temporalio/worker';
import type { Slots } from '../activities/host/slots.ts';

type Tuner = NonNullable<WorkerOptions['tuner']>;
const unused = { type: 'fixed-size', numSlots: 2 } as const;

/**
 * Makes a host poll for rollouts only while it has a free slot. The backlog stays on the server, where any host with
 * free slots takes from it.
 */
export function placementTuner(slots: Slots): Tuner {
  const supplier: CustomSlotSupplier<ActivitySlotInfo> = {
    type: 'custom',
    reserveSlot: async (_context, abortSignal) => {
      await slots.reserve(abortSignal);
      return {};
    },
    tryReserveSlot: () => (slots.tryReserve() ? {} : null),
    markSlotUsed: () => {},
    releaseSlot: () => slots.settle(),
  };
  return {
    activityTaskSlotSupplier: supplier,
    workflowTaskSlotSupplier: unused,
    localActivityTaskSlotSupplier: unused,
    nexusTaskSlotSupplier: unused,
  };
}
