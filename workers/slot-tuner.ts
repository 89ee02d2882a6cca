import type { ActivitySlotInfo, CustomSlotSupplier, WorkerOptions } from '@temporalio/worker';

export type Tuner = NonNullable<WorkerOptions['tuner']>;
const unused = { type: 'fixed-size', numSlots: 2 } as const;

/** Slots of a host, which bound what its worker takes from a task queue. */
export interface SlotSource {
  /** Resolves when a slot is free; it is then reserved for the caller until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
}

/**
 * Makes a host poll a task queue only while it has a free slot. The backlog stays on the server, where waiting costs
 * nothing, and where any host with free slots takes from a shared queue.
 */
export function slotTuner(slots: SlotSource): Tuner {
  return activityTuner({
    type: 'custom',
    reserveSlot: async (_context, abortSignal) => {
      await slots.reserve(abortSignal);
      return {};
    },
    tryReserveSlot: () => (slots.tryReserve() ? {} : null),
    markSlotUsed: () => {},
    releaseSlot: () => slots.settle(),
  });
}

/** Makes a tuner of a worker that only runs activities. */
export function activityTuner(supplier: CustomSlotSupplier<ActivitySlotInfo>): Tuner {
  return {
    activityTaskSlotSupplier: supplier,
    workflowTaskSlotSupplier: unused,
    localActivityTaskSlotSupplier: unused,
    nexusTaskSlotSupplier: unused,
  };
}
