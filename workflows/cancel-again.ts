import { CancellationScope, condition, getExternalWorkflowHandle } from '@temporalio/workflow';
import { cancelAgainFirstMs, cancelAgainMostMs } from './activity-options.ts';

/** One that has ended meanwhile can't be cancelled, and need not be. */
export async function cancelByName(workflowIds: Iterable<string>): Promise<void> {
  const cancels = Array.from(workflowIds, (id) => getExternalWorkflowHandle(id).cancel());
  await Promise.allSettled(cancels);
}

/**
 * Waits until nothing is at work any more. The server drops a cancel that overtakes the start of its child ("not found",
 * which the SDK keeps to itself), and that child would work on to its end. So whatever does not end is cancelled again, by
 * name, soon and then more rarely: that is nothing new to one that has heard. `meanwhile` runs after each of these rounds.
 */
export async function cancelUntilEnded(
  atWork: () => readonly string[],
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  await CancellationScope.nonCancellable(async () => {
    let waitMs = cancelAgainFirstMs;
    while (!(await condition(() => atWork().length === 0, waitMs))) {
      await cancelByName(atWork());
      await meanwhile();
      waitMs = Math.min(waitMs * 2, cancelAgainMostMs);
    }
  });
}
