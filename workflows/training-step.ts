import {
  ApplicationFailure,
  isCancellation,
  log,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { GatheredBatch, RecordStep } from '../activities/interfaces/control.ts';
import { batches, control, trainer, triggering } from './activities.ts';
import { staleness } from './algorithms/staleness.ts';
import { rootMessage } from './contracts/error-message.ts';
import type { OnFlag } from './contracts/on-flag.ts';
import { equalRewards, fates, zeroCount } from './contracts/outcome.ts';
import type { StepResult, Training } from './contracts/run.ts';
import { searchAttributes } from './contracts/search-attributes.ts';

export interface TrainingStepInput {
  readonly run: string;
  readonly runKey: string;
  readonly step: number;
  /** The number of steps of the whole run. */
  readonly steps: number;
  /** The last earlier step that made an update; 0 if there is none. */
  readonly lastUpdate: number;
  /** The number of earlier steps that made one. */
  readonly updates: number;
  /** The numbers of the groups to train on. */
  readonly groups: readonly number[];
  /** Pairs of group number and fate, of groups that ended without being trained since the last step; for the record. */
  readonly dropped: readonly (readonly [number, string])[];
  /** The failure because of which the step is skipped; null if it is made. */
  readonly skippedBecause: string | null;
  readonly training: Training;
  readonly onFlag?: OnFlag | undefined;
  /** The pool of the run's engines. */
  readonly pool: string;
}

/** Makes one optimizer update, or skips it: gathers and pins the batch, normalises it, updates the policy, and syncs the weights. */
export async function trainingStep(input: TrainingStepInput): Promise<StepResult> {
  if (workflowInfo().parent === undefined) {
    throw ApplicationFailure.nonRetryable(
      'trainingStep: expected to be started by a trainingRun, got a direct start; start a trainingRun instead',
      'InvalidInput',
    );
  }
  const { run, runKey, step, skippedBecause } = input;
  upsertSearchAttributes([
    { key: searchAttributes.run, value: run },
    { key: searchAttributes.step, value: step },
  ]);
  const { result, trained, zeroVariance, dropped } = skippedBecause === null ? await make(input) : await skip(input);
  await control.recordStep({ runKey, result, trained, zeroVariance, dropped });
  await triggerSchedules(run, runKey, step);
  show(step, skippedBecause === null ? `done: mean reward ${result.meanReward?.toFixed(3) ?? 'none'}` : 'skipped');
  return result;
}

type Made = Omit<RecordStep, 'runKey'>;

async function make(input: TrainingStepInput): Promise<Made> {
  const { runKey, step, steps, groups, training, pool, onFlag } = input;
  show(step, 'gatherBatch');
  const dropped = input.dropped.map(([index]) => index);
  const gathered = await batches.gatherBatch({ runKey, step, groups, dropped, training, ...(onFlag && { onFlag }) });
  let metrics: Readonly<Record<string, number>> = {};
  let { lastUpdate } = input;
  if (gathered.batch !== null) {
    show(step, 'normalise');
    const { batch } = gathered;
    const { advantages, metrics: batchMetrics } = await batches.normalise({ batch, training });
    show(step, 'update');
    const scheduled = { update: input.updates + 1, mostUpdates: input.updates + steps - step + 1 };
    const updated = await trainer.update({ runKey, pool, step, ...scheduled, lastUpdate, batch, advantages, training });
    metrics = { ...gathered.metrics, ...batchMetrics, ...updated.metrics };
    lastUpdate = step;
  }
  // If there is nothing to learn from, the version still advances, so that step and version stay the same number.
  show(step, 'syncWeights');
  const { maxLogprobGap } = await trainer.syncWeights({ runKey, pool, version: step, lastUpdate, training });
  const counts = zeroCount(fates);
  counts.trained = gathered.trainedGroups.length;
  counts['zero-variance'] = gathered.zeroVarianceGroups.length;
  const pinned = pinnedGroups(gathered);
  const isAsAsked = pinned.length === groups.length && pinned.every(([index]) => groups.includes(index));
  const result: StepResult = {
    step,
    batch: gathered.batch,
    groups: counts,
    rollouts: gathered.rollouts,
    tokens: gathered.tokens,
    equalGroups: gathered.equalGroups,
    meanReward: gathered.meanReward,
    scoredReward: gathered.scoredReward,
    staleness: gathered.minVersion === null ? 0 : staleness(step, gathered.minVersion),
    metrics: gathered.batch === null ? {} : { ...metrics, maxLogprobGap },
    skippedBecause: null,
    ...(!isAsAsked && { pinned }),
  };
  const inStep = new Set(pinned.map(([index]) => index));
  return {
    result,
    trained: gathered.trainedGroups,
    zeroVariance: gathered.zeroVarianceGroups,
    dropped: input.dropped.filter(([index]) => !inStep.has(index)),
  };
}

/** The groups of a batch, with their fates. */
const pinnedGroups = ({ trainedGroups, zeroVarianceGroups }: GatheredBatch): NonNullable<StepResult['pinned']> => [
  ...trainedGroups.map((index) => [index, 'trained'] as const),
  ...zeroVarianceGroups.map((index) => [index, 'zero-variance'] as const),
];

/** Leaves the groups of a step untrained. Its version has the weights of the version before. */
async function skip(input: TrainingStepInput): Promise<Made> {
  const { runKey, step, groups, lastUpdate, training, pool, skippedBecause } = input;
  show(step, 'skipUpdate');
  await trainer.skipUpdate({ runKey, step });
  show(step, 'syncWeights');
  await trainer.syncWeights({ runKey, pool, version: step, lastUpdate, training });
  const counts = zeroCount(fates);
  counts.skipped = groups.length;
  const none = { batch: null, rollouts: 0, tokens: 0, meanReward: null, scoredReward: null, staleness: 0, metrics: {} };
  return {
    result: { step, groups: counts, equalGroups: zeroCount(equalRewards), ...none, skippedBecause },
    trained: [],
    zeroVariance: [],
    dropped: [...input.dropped, ...groups.map((index) => [index, 'skipped'] as const)],
  };
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
