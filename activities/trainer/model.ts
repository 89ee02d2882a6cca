import { log } from '@temporalio/activity';
import type { TrainerJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts } from '../../infra/trainer/requests.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Training } from '../../workflows/contracts/run.ts';
import type { TrainerContext } from './dependencies.ts';
import { unloadAllBut } from './unload.ts';

/** The usual settings of AdamW; learning rate and ε belong to the run. */
export const adam = { beta1: 0.9, beta2: 0.95, weightDecay: 0 } as const;

/**
 * Runs work on the run's live model. If the server has lost the model because it restarted, the journal forgets it and the
 * failure is retryable: the next try rolls back to the last checkpoint and replays.
 */
export async function onLiveModel<Result>(journal: TrainerJournal, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TemperFailure && error.type === 'TrainerLostModel') {
      log.warn('the trainer lost the model; the next activity attempt loads the last checkpoint', {
        error: error.message,
      });
      await journal.write({ modelId: null, referenceId: null });
    }
    throw error;
  }
}

/** The part of the context by which a model is brought into a state. */
export type ModelContext = Pick<TrainerContext, 'trainer' | 'store' | 'journal' | 'signal'>;

/** Returns the live model in its state after `step`: loads the last checkpoint at or before it, and replays pinned data. */
export async function modelAt(context: ModelContext, step: number, training: Training): Promise<string> {
  const { trainer, store, journal, signal } = context;
  const { state } = journal;
  if (state.modelId !== null && (await journal.lastUpdate(state.step)) === (await journal.lastUpdate(step))) {
    return state.modelId;
  }
  const from = await journal.lastCheckpoint(step);
  const modelId = await loadCheckpoint(context, { step: from, optimizer: from > 0, loraRank: training.loraRank });
  for (const [name, { data, sizes, learningRate }] of await updatesBetween(journal, from, step)) {
    log.info('replaying a pinned update', { step: name });
    await applyUpdate(trainer, {
      modelId,
      data: (await store.getJson(data)) as readonly Datum[],
      sequences: await updateSequences(journal, modelId, sizes),
      learningRate,
      training,
      signal,
    });
  }
  await journal.write({ modelId, step });
  // Unloads the model from before this rollback, and any model that an interrupted try has loaded.
  await unloadAllBut(context, [modelId, journal.state.referenceId]);
  return modelId;
}

/** Returns a model that holds version 0 and is never trained: the reference of a KL penalty. */
export async function referenceModel(context: ModelContext, { loraRank }: Training): Promise<string> {
  const { journal } = context;
  const known = journal.state.referenceId;
  if (known !== null) return known;
  const referenceId = await loadCheckpoint(context, { step: 0, optimizer: false, loraRank });
  await journal.write({ referenceId });
  return referenceId;
}

async function loadCheckpoint(
  { trainer, journal, signal }: ModelContext,
  { step, optimizer, loraRank }: { readonly step: number; readonly optimizer: boolean; readonly loraRank: number },
): Promise<string> {
  const path = (await journal.steps(step, step)).checkpoints[step];
  if (path === undefined) throw new Error(`expected a checkpoint of step ${step} in the trainer's journal, got none`);
  const modelId = await trainer.createModel({ loraRank, seed: 0 }, signal);
  await trainer.load(modelId, { path, optimizer }, await journal.nextSequence(modelId), signal);
  return modelId;
}

/** The sequence ids of an update's requests. */
export interface UpdateSequences {
  readonly forwardSequence: number;
  readonly optimSequence: number;
  /** The number of datums of each forward_backward; absent when one takes all. */
  readonly sizes?: readonly number[] | undefined;
}

export async function updateSequences(journal: TrainerJournal, modelId: string, sizes: number[] | undefined) {
  const requests = sizes?.length ?? 1;
  const forwardSequence = await journal.nextSequence(modelId, requests + 1);
  return { forwardSequence, optimSequence: forwardSequence + requests, ...(sizes !== undefined && { sizes }) };
}

export interface UpdateToApply {
  readonly modelId: string;
  readonly data: readonly Datum[];
  readonly sequences: UpdateSequences;
  readonly learningRate: number;
  readonly training: Training;
  readonly signal: AbortSignal;
}

/** Sends forward_backward and, once that has succeeded, optim_step. The trainer executes each once per sequence id. */
export async function applyUpdate(
  trainer: Trainer,
  { modelId, data, sequences, learningRate, training, signal }: UpdateToApply,
): Promise<Readonly<Record<string, number>>> {
  const { forwardSequence, optimSequence, sizes } = sequences;
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

/** The largest gap between the trainer's logprobs and those of sampling: 0 on-policy with the embedded policy. */
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

/** The updates of the steps after `from`, up to `to`, in order. */
async function updatesBetween(journal: TrainerJournal, from: number, to: number) {
  const { updates } = await journal.steps(from + 1, to);
  return Object.keys(updates)
    .map(Number)
    .sort((a, b) => a - b)
    .flatMap((step) => {
      const update = updates[step];
      return update?.metrics ? [[step, update] as const] : [];
    });
}
