import { log } from '@temporalio/activity';
import type { TrainerJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts } from '../../infra/trainer/requests.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Training } from '../../workflows/contracts/run.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { unloadAllBut } from './unload.ts';

/** AdamW as the field trains with it; learning rate and ε belong to the run. */
export const adam = { beta1: 0.9, beta2: 0.95, weightDecay: 0 } as const;

/**
 * Runs work on the run's live model. When the server turns out to have lost it (it restarted), the journal forgets it and
 * the failure is retryable: the next attempt rolls back to the last checkpoint and replays.
 */
export async function onLiveModel<Result>(journal: TrainerJournal, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TemperFailure && error.type === 'TrainerLostModel') {
      log.warn('the trainer lost the model; the next attempt loads the last checkpoint', { error: error.message });
      await journal.write({ modelId: null, referenceId: null });
    }
    throw error;
  }
}

/** The live model, brought to the state after `step`: from the last checkpoint at or before it, replaying pinned data. */
export async function modelAt(
  { trainer, store }: TrainerDependencies,
  journal: TrainerJournal,
  step: number,
  training: Training,
  signal: AbortSignal,
): Promise<string> {
  const { state } = journal;
  if (state.modelId !== null && lastUpdate(journal, state.step) === lastUpdate(journal, step)) return state.modelId;
  const from = lastCheckpoint(journal, step);
  const modelId = await loadCheckpoint(trainer, journal, from, training, { optimizer: from > 0 }, signal);
  for (const [name, update] of updatesBetween(journal, from, step)) {
    log.info('replaying a pinned update', { step: name });
    const data = (await store.getJson(update.data)) as readonly Datum[];
    const sequences = await updateSequences(journal, modelId, update.sizes);
    const intent = { ...sequences, learningRate: update.learningRate };
    await applyUpdate(trainer, modelId, intent, data, training, signal);
  }
  await journal.write({ modelId, step });
  // The one before it, where this is a way back, and what an attempt that was broken off has loaded.
  await unloadAllBut([modelId, journal.state.referenceId], trainer, journal, signal);
  return modelId;
}

/** Version 0 in a model of its own, never trained. */
export async function referenceModel(
  { trainer }: TrainerDependencies,
  journal: TrainerJournal,
  training: Training,
  signal: AbortSignal,
): Promise<string> {
  const known = journal.state.referenceId;
  if (known !== null) return known;
  const referenceId = await loadCheckpoint(trainer, journal, 0, training, { optimizer: false }, signal);
  await journal.write({ referenceId });
  return referenceId;
}

async function loadCheckpoint(
  trainer: Trainer,
  journal: TrainerJournal,
  step: number,
  training: Training,
  options: { readonly optimizer: boolean },
  signal: AbortSignal,
): Promise<string> {
  const path = journal.state.checkpoints[step];
  if (path === undefined) throw new Error(`expected a checkpoint of step ${step} in the trainer's journal, got none`);
  const modelId = await trainer.createModel({ loraRank: training.loraRank, seed: 0 }, signal);
  await trainer.load(modelId, { path, ...options }, await journal.nextSequence(modelId), signal);
  return modelId;
}

/** Under which ids the requests of an update go out. */
export interface UpdateSequences {
  readonly forwardSequence: number;
  readonly optimSequence: number;
  /** How many datums each forward_backward takes; absent: one takes all. */
  readonly sizes?: readonly number[] | undefined;
}

export async function updateSequences(journal: TrainerJournal, modelId: string, sizes: number[] | undefined) {
  const requests = sizes?.length ?? 1;
  const forwardSequence = await journal.nextSequence(modelId, requests + 1);
  return { forwardSequence, optimSequence: forwardSequence + requests, ...(sizes !== undefined && { sizes }) };
}

export interface UpdateIntent extends UpdateSequences {
  readonly learningRate: number;
}

/** forward_backward, then optim_step: never sent before the first has succeeded. Each is done once per sequence id. */
export async function applyUpdate(
  trainer: Trainer,
  modelId: string,
  { forwardSequence, optimSequence, sizes, learningRate }: UpdateIntent,
  data: readonly Datum[],
  training: Training,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const { loss, clipLow, clipHigh, gradClipNorm, adamEps: eps } = training;
  const lossConfig =
    loss === 'importance_sampling' ? {} : { clip_low_threshold: clipLow, clip_high_threshold: clipHigh };
  const request = { modelId, sequence: forwardSequence, data, loss, lossConfig };
  const forward = await forwardBackwardInParts(trainer, request, sizes ?? [data.length], signal);
  const optim = await trainer.optimStep(
    { modelId, sequence: optimSequence, learningRate, gradClipNorm, eps, ...adam },
    signal,
  );
  return { ...forward.metrics, ...optim, ...behaviourGap(data, forward.logprobs) };
}

/** How far the trainer's logprobs are from those of sampling: 0 on-policy with the embedded policy. */
function behaviourGap(data: readonly Datum[], logprobs: readonly (readonly number[])[]): Record<string, number> {
  let largest = 0;
  for (const [index, { weights, logprobs: behaviour }] of data.entries()) {
    for (const [position, weight] of weights.entries()) {
      if (weight === 0) continue;
      const gap = Math.abs((logprobs[index]?.[position] ?? Number.NaN) - (behaviour?.[position] ?? Number.NaN));
      if (gap > largest) largest = gap;
    }
  }
  return { maxBehaviourGap: largest };
}

const stepsOf = (record: Readonly<Record<string, unknown>>): number[] =>
  Object.keys(record)
    .map(Number)
    .sort((a, b) => a - b);

const lastCheckpoint = (journal: TrainerJournal, step: number): number =>
  stepsOf(journal.state.checkpoints)
    .filter((one) => one <= step)
    .at(-1) ?? 0;

/** Steps without an update leave the model as it was. */
const lastUpdate = (journal: TrainerJournal, step: number): number =>
  stepsOf(journal.state.updates)
    .filter((one) => one <= step && journal.state.updates[one]?.metrics !== null)
    .at(-1) ?? 0;

const updatesBetween = (journal: TrainerJournal, from: number, to: number) =>
  stepsOf(journal.state.updates)
    .filter((step) => step > from && step <= to)
    .flatMap((step) => {
      const update = journal.state.updates[step];
      return update?.metrics ? [[step, update] as const] : [];
    });
