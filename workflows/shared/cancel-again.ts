import { CancellationScope, condition, getExternalWorkflowHandle, patched } from '@temporalio/workflow';
import { cancelAgainFirstMs, cancelAgainMostMs, cancelledLookMostMs } from '../activity-options.ts';

/** Requests the cancellation of workflows. One that has already ended can't be cancelled, which is no error here. */
export async function cancelByName(workflowIds: Iterable<string>): Promise<void> {
  const cancels = Array.from(workflowIds, (id) => getExternalWorkflowHandle(id).cancel());
  await Promise.allSettled(cancels);
}

/**
 * Waits until no workflow is left, and cancels those that remain again by name, first soon and then at ever longer intervals.
 * This is necessary because the server drops a cancel that overtakes the start of its child ("not found", which the SDK does
 * not report), and such a child would run to its end. A repeated cancel has no effect. `meanwhile` runs at each look whether
 * some remain.
 */
export async function cancelUntilEnded(
  running: () => readonly string[],
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  await CancellationScope.nonCancellable(async () => {
    // Workflows of 0.4.0 cancelled at each look.
    const rarely = patched('cancel-at-longer-intervals');
    const mostMs = rarely ? cancelledLookMostMs : cancelAgainMostMs;
    let lookMs = cancelAgainFirstMs;
    let cancelMs = cancelAgainFirstMs;
    let cancelAtMs = Date.now() + cancelMs;
    while (!(await condition(() => running().length === 0, lookMs))) {
      if (!rarely || Date.now() >= cancelAtMs) {
        await cancelByName(running());
        cancelMs *= 2;
        cancelAtMs = Date.now() + cancelMs;
      }
      await meanwhile();
      lookMs = Math.min(lookMs * 2, mostMs);
    }
  });
}
