import { CancellationScope, log, upsertMemo } from '@temporalio/workflow';
import { inWorkflowTask } from '../activities.ts';
import type { RolloutCost } from '../contracts/cost.ts';
import { rootMessage } from '../contracts/error-message.ts';

/* A workflow that is cancelled has no result, so its parent learns from its memo what it cost. */

/** Keeps the cost of this rollout, which is cancelled, in its memo. */
export function keepCost(cost: RolloutCost): void {
  upsertMemo({ cost });
}

/** Reads what a cancelled rollout cost. If it is unknown, nothing is returned. */
export async function costOfCancelled(workflowId: string): Promise<{ readonly cost?: RolloutCost }> {
  try {
    const { cost } = await CancellationScope.nonCancellable(() => inWorkflowTask.readRolloutCost({ workflowId }));
    return cost === null ? {} : { cost };
  } catch (error) {
    log.warn('the cost of a cancelled rollout is not known', { workflowId, error: rootMessage(error) });
    return {};
  }
}
