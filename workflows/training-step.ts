import {
  ApplicationFailure,
  isCancellation,
  log,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { batches, control, trainer, triggering } from './activities.ts';
import { staleness } from './algorithms/staleness.ts';
import { rootMessage } from './contracts/error-message.ts';
import { fates, zeroCount } from './contracts/outcome.ts';
import type { StepResult, Training } from './contracts/run.ts';
import { searchAttributes } from './contracts/search-attributes.ts';

export interface TrainingStepInput {
  readonly run: string;
  readonly runKey: string;
  readonly step: number;
  /** The number of steps of the whole run. */
  readonly steps: number;
  /** The numbers of the groups to train on. */
  readonly groups: readonly number[];
  /** Pairs of group number and fate, of groups that ended without being trained since the last step; for the record. */
  readonly dropped: readonly (readonly [number, string])[];
  readonly training: Training;
  /** The pool of the run's engines. */
  readonly pool: string;
}

/** Makes one optimizer update: gathers and pins the batch, normalises it, updates the policy, and syncs the weights. */
export async function trainingStep(input: TrainingStepInput): Promise<StepResult> {
  if (workflowInfo().parent === undefined) {
    throw ApplicationFailure.nonRetryable(
      'trainingStep: expected to be started by a trainingRun, got a direct start; start a trainingRun instead',
      'InvalidInput',
    );
  }
  const { run, runKey, step, steps, groups, training, pool } = input;
  upsertSearchAttributes([
    { key: searchAttributes.run, value: run },
    { key: searchAttributes.step, value: step },
  ]);

  show(step, 'gatherBatch');
  const gathered = await batches.gatherBatch({ runKey, step, groups, training });
  let metrics: Readonly<Record<string, number>> = {};
  if (gathered.batch !== null) {
    show(step, 'normalise');
    const { advantages, metrics: batchMetrics } = await batches.normalise({ batch: gathered.batch, training });
    show(step, 'update');
    const updated = await trainer.update({ runKey, pool, step, steps, batch: gathered.batch, advantages, training });
    metrics = { ...gathered.metrics, ...batchMetrics, ...updated.metrics };
    show(step, 'syncWeights');
    const { maxLogprobGap } = await trainer.syncWeights({ runKey, pool, version: step, training });
    metrics = { ...metrics, maxLogprobGap };
  } else {
    // There is nothing to learn from. The version still advances, so that step and version stay the same number.
    show(step, 'syncWeights');
    await trainer.syncWeights({ runKey, pool, version: step, training });
  }

  const counts = zeroCount(fates);
  counts.trained = gathered.trainedGroups.length;
  counts['zero-variance'] = gathered.zeroVarianceGroups.length;
  const result: StepResult = {
    step,
    batch: gathered.batch,
    groups: counts,
    rollouts: gathered.rollouts,
    tokens: gathered.tokens,
    meanReward: gathered.meanReward,
    staleness: gathered.minVersion === null ? 0 : staleness(step, gathered.minVersion),
    metrics,
  };
  await control.recordStep({
    runKey,
    result,
    trained: gathered.trainedGroups,
    zeroVariance: gathered.zeroVarianceGroups,
    dropped: input.dropped,
  });
  await triggerSchedules(run, runKey, step);
  show(step, `done: mean reward ${gathered.meanReward?.toFixed(3) ?? 'none'}`);
  return result;
}

/** Triggers the sweeps that follow this run's steps. A sweep that can't be started does not stop training. */
async function triggerSchedules(run: string, runKey: string, step: number): Promise<void> {
  await triggering.triggerSchedules({ run, runKey, step }).catch((error) => {
    if (isCancellation(error)) throw error;
    log.warn('sweep schedules could not be triggered', { step, error: rootMessage(error) });
  });
}

function show(step: number, stage: string): void {
  setCurrentDetails(`Step ${step}: **${stage}**`);
}
