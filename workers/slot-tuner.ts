import type { ActivitySlotInfo, CustomSlotSupplier, WorkerOptions } from '@temporalio/worker';
import type { Intake } from '../activities/host/intake.ts';

export type Tuner = NonNullable<WorkerOptions['tuner']>;
const unused = { type: 'fixed-size', numSlots: 2 } as const;

/** Slots of a host, which bound what its worker takes from a task queue. */
export interface SlotSource {
  /** Resolves when a slot is free; it is then reserved for the caller until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
}

/** Offers slots only while the host takes new work. */
export function whileOpen(intake: Intake, slots: SlotSource): SlotSource {
  return {
    async reserve(signal) {
      for (;;) {
        await intake.opened(signal);
        await slots.reserve(signal);
        if (intake.closedBy === null) return;
        slots.settle();
      }
    },
    tryReserve: () => intake.closedBy === null && slots.tryReserve(),
    settle: () => slots.settle(),
  };
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
