import { CancellationScope, condition, getExternalWorkflowHandle } from '@temporalio/workflow';
import { cancelAgainFirstMs, cancelledLookMostMs, endingLookMs } from '../activity-options.ts';

/** Requests the cancellation of workflows. One that has already ended can't be cancelled, which is no error here. */
export async function cancelByName(workflowIds: Iterable<string>): Promise<void> {
  const cancels = Array.from(workflowIds, (id) => getExternalWorkflowHandle(id).cancel());
  await Promise.allSettled(cancels);
}

/** The looks after workflows that were cancelled and do not tell by themselves that they have ended. */
export interface Looks {
  /** Whether a look is worth while now. */
  isDue(): boolean;
  /** Looks once, and returns whether to look again soon. */
  look(): Promise<boolean>;
}

/**
 * Waits until no workflow is left, and cancels those that remain again by name, first soon and then at ever longer intervals.
 * This is necessary because the server drops a cancel that overtakes the start of its child ("not found", which the SDK does
 * not report), and such a child would run to its end. A repeated cancel has no effect.
 */
export async function cancelUntilEnded(
  running: () => readonly string[],
  { isDue, look }: Looks = { isDue: () => false, look: async () => false },
): Promise<void> {
  await CancellationScope.nonCancellable(async () => {
    let lookMs = cancelAgainFirstMs;
    let cancelMs = cancelAgainFirstMs;
    let cancelAtMs = Date.now() + cancelMs;
    for (;;) {
      await condition(() => running().length === 0 || isDue(), lookMs);
      if (running().length === 0) return;
      if (Date.now() >= cancelAtMs) {
        await cancelByName(running());
        cancelMs *= 2;
        cancelAtMs = Date.now() + cancelMs;
      }
      lookMs = (await look()) ? endingLookMs : Math.min(lookMs * 2, cancelledLookMostMs);
    }
  });
}
