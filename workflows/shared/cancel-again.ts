import { CancellationScope, condition, getExternalWorkflowHandle } from '@temporalio/workflow';
import { cancelAgainFirstMs, cancelAgainMostMs } from '../activity-options.ts';

/** Requests the cancellation of workflows. One that has already ended can't be cancelled, which is no error here. */
export async function cancelByName(workflowIds: Iterable<string>): Promise<void> {
  const cancels = Array.from(workflowIds, (id) => getExternalWorkflowHandle(id).cancel());
  await Promise.allSettled(cancels);
}

/**
 * Waits until no workflow is left, and cancels those that remain again by name, first soon and then at longer intervals.
 * This is necessary because the server drops a cancel that overtakes the start of its child ("not found", which the SDK does
 * not report), and such a child would run to its end. A repeated cancel has no effect. `meanwhile` runs after each round.
 */
export async function cancelUntilEnded(
  running: () => readonly string[],
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  await CancellationScope.nonCancellable(async () => {
    let waitMs = cancelAgainFirstMs;
    while (!(await condition(() => running().length === 0, waitMs))) {
      await cancelByName(running());
      await meanwhile();
      waitMs = Math.min(waitMs * 2, cancelAgainMostMs);
    }
  });
}
