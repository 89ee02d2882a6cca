import {
  CancellationScope,
  ChildWorkflowFailure,
  executeChild,
  ParentClosePolicy,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { control } from '../activities.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import { searchAttributes, shownReward } from '../contracts/search-attributes.ts';
import type { SweepCounts, SweepInput } from '../contracts/sweep.ts';
import type { rollout } from '../rollout.ts';

/** How a sweep goes on that a worker of version 0.1.0 began: one rollout of each of the first tasks, as it was recorded. */
export async function firstTasks(input: SweepInput): Promise<SweepCounts> {
  upsertSearchAttributes([
    { key: searchAttributes.run, value: workflowInfo().workflowId },
    { key: searchAttributes.agent, value: input.settings.agent },
  ]);
  const counts = zeroCount(outcomes);
  const rewards: number[] = [];
  let next = 0;

  const worker = async (): Promise<void> => {
    while (next < input.count) {
      const index = next;
      next += 1;
      const result = await evaluateOne(input, index);
      counts[result?.outcome ?? 'cancelled'] += 1;
      if (result !== null && result.reward !== null) rewards.push(result.reward);
      setCurrentDetails(
        `${counts.scored} of ${input.count} scored, mean reward ${mean(rewards)?.toFixed(3) ?? 'none yet'}`,
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(input.concurrency, input.count) }, worker));
  const meanReward = mean(rewards);
  if (meanReward !== null) upsertSearchAttributes([shownReward(meanReward)]);
  return { tasks: input.count, outcomes: counts, meanReward };
}

async function evaluateOne({ tasks, seed, settings }: SweepInput, index: number) {
  const { workflowId } = workflowInfo();
  const { address } = await control.chooseTask({ tasks, seed, index });
  try {
    return await executeChild<typeof rollout>('rollout', {
      workflowId: `${workflowId}/rollout-${index}`,
      args: [{ task: address, ...settings, purpose: 'evaluation' }],
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      typedSearchAttributes: [
        { key: searchAttributes.run, value: workflowId },
        { key: searchAttributes.task, value: address },
        { key: searchAttributes.agent, value: settings.agent },
      ],
      staticSummary: `${settings.agent} at ${address}`,
    });
  } catch (error) {
    // A rollout that alone was cancelled or terminated is counted; a cancel of the sweep ends it.
    if (CancellationScope.current().consideredCancelled || !(error instanceof ChildWorkflowFailure)) throw error;
    return null;
  }
}

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
