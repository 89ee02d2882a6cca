import { CancellationScope, workflowInfo } from '@temporalio/workflow';
import { inWorkflowTask, recording } from '../activities.ts';
import type { RolloutInput, RolloutResult } from '../contracts/rollout.ts';
import { type RolloutRecord, recordFormat } from '../contracts/rollout-record.ts';

/**
 * Writes the record of a rollout, which is its last step, also when it is cancelled. Returns its result: that of the record that
 * exists already, if another writer came first.
 */
export async function recordResult(input: RolloutInput, result: RolloutResult): Promise<RolloutResult> {
  const record = recordOf(input, result);
  const { adopted } = await CancellationScope.nonCancellable(() =>
    // As an activity of its own it is tried until the store takes it, and people see why it has to wait.
    inWorkflowTask.recordRollout(record).catch(() => recording.recordRollout(record)),
  );
  return adopted ?? result;
}

function recordOf(
  { task, sandbox, rewardPolicy, evaluationTimeoutSec, offlineTests, purpose, member }: RolloutInput,
  result: RolloutResult,
): RolloutRecord {
  return {
    format: recordFormat,
    writer: 'rollout',
    result,
    ...(member !== undefined && { member }),
    purpose,
    evaluation: {
      sandbox,
      rewardPolicy,
      ...(offlineTests && { offlineTests }),
      ...(evaluationTimeoutSec !== undefined && { evaluationTimeoutSec }),
      ...(typeof task === 'string' && { address: task }),
    },
    startedAt: workflowInfo().startTime.getTime(),
    endedAt: Date.now(),
  };
}
