import { log } from '@temporalio/activity';
import type { TrainerJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts, requestSizes } from '../../infra/trainer/requests.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Training } from '../../workflows/contracts/run.ts';
import type { TrainerContext } from './dependencies.ts';
import { unloadAllBut } from './unload.ts';

/** The usual settings of AdamW; learning rate and ε belong to the run. */
export const adam = { beta1: 0.9, beta2: 0.95, weightDecay: 0 } as const;

/**
 * Runs work on the run's live model. When the server has lost the model because it restarted, or a request has failed for good, the
 * journal forgets the model: the next attempt rolls back to the last checkpoint and replays, under new sequence ids. Under the
 * old ones the server would answer with the failure again.
 */
export async function onLiveModel<Result>(journal: TrainerJournal, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TemperFailure && (error.type === 'TrainerLostModel' || error.type === 'TrainerRefused')) {
      log.warn('the live model was lost or a request failed; the next activity attempt loads the last checkpoint', {
        error: error.message,
      });
      await journal.write({ modelId: null, referenceId: null });
    }
    throw error;
  }
}

/** The part of the context by which a model is brought into a state. */
export type ModelContext = Pick<TrainerContext, 'trainer' | 'store' | 'journal' | 'signal' | 'requestTokens'>;

/** A state of the run's model. */
export interface ModelState {
  readonly step: number;
  /** The last step up to it that made an update, as the run knows it. */
  readonly lastUpdate: number;
  /** The step whose update may have begun on the model, and is continued. Default: none. */
  readonly continued?: number;
}

/**
 * Returns the live model in a state: loads the last checkpoint at or before it, and replays pinned data. Throws JournalMismatch if
 * the journal and the run differ in the last update.
 */
export async function modelAt(context: ModelContext, wanted: ModelState, training: Training): Promise<string> {
  const { trainer, store, journal, signal, requestTokens } = context;
  await requireLastUpdate(journal, wanted);
  const live = await liveModel(journal, wanted);
  if (live !== null) return live;
  if (journal.state.modelId !== null) await journal.write({ modelId: null });
  const { modelId, from } = await loadLastCheckpoint(context, wanted.step, training.loraRank);
  for (const [name, update] of await updatesBetween(journal, from, wanted.step)) {
    log.info('replaying a pinned update', { step: name });
    const data = (await store.getJson(update.data)) as readonly Datum[];
    await applyUpdate(trainer, {
      modelId,
      data,
      sequences: await updateSequences(journal, modelId, requestSizes(data, requestTokens)),
      learningRate: update.learningRate,
      training,
      signal,
    });
  }
  await journal.write({ modelId, step: wanted.step });
  return modelId;
}

async function requireLastUpdate(journal: TrainerJournal, { step, lastUpdate }: ModelState): Promise<void> {
  const journaled = await journal.lastUpdate(step);
  if (journaled === lastUpdate) return;
  const end = (last: number): string => (last === 0 ? 'no update' : `an update of step ${last}`);
  throw new TemperFailure(
    'JournalMismatch',
    `${journal.location}: expected ${end(lastUpdate)} as the last one up to step ${step}, got ${end(journaled)}; ` +
      "restore the store and Temporal's database from the same time, then resume",
  );
}

/** Returns the id of the live model if it is in the state; null if there is none, or if an update has begun on it that is not continued. */
async function liveModel(journal: TrainerJournal, { lastUpdate, continued }: ModelState): Promise<string | null> {
  const { modelId, step, updates } = journal.state;
  if (modelId === null || (await journal.lastUpdate(step)) !== lastUpdate) return null;
  const begun = Object.entries(updates).filter(([, update]) => update.metrics === null && update.modelId === modelId);
  return begun.every(([name]) => Number(name) === continued) ? modelId : null;
}

/** The number of checkpoints that are tried: as many as retention keeps of a run. */
const mostTried = 3;

/**
 * Loads the last checkpoint up to a step into a new model. One that does not load, perhaps because its save was cut off, is passed
 * over for the one before. If none of the last few does, the trainer or its disk is at fault, and a replay from earlier would
 * take long.
 */
async function loadLastCheckpoint(context: ModelContext, step: number, loraRank: number) {
  const { journal } = context;
  const tried: number[] = [];
  let first: unknown = null;
  for (let from = await journal.lastCheckpoint(step); ; from = await journal.lastCheckpoint(from - 1)) {
    // The model from before a rollback is unloaded first, and any that an interrupted attempt has loaded: two may not fit.
    await unloadAllBut(context, [journal.state.referenceId]);
    const { path, modelId } = await newModelFor(context, from, loraRank);
    try {
      await load(context, modelId, { path, optimizer: from > 0 });
      return { modelId, from };
    } catch (error) {
      if (!doesNotLoad(error)) throw error;
      first ??= error;
      tried.push(from);
      if (from === 0 || tried.length === mostTried) {
        // A trainer that was restarted in the meantime may load the only one afterwards.
        if (tried.length === 1) throw first;
        throw new TemperFailure(
          'TrainerRefused',
          `no checkpoint of the steps ${tried.join(', ')} loads: ${errorMessage(first)}; check the trainer and where its checkpoints are, then resume`,
          { cause: first },
        );
      }
      log.warn('a checkpoint does not load; temper loads the one before it and replays the pinned batches from there', {
        step: from,
        error: errorMessage(error),
      });
    }
  }
}

/** Whether a load failed as that of another checkpoint may not. A server may say of a checkpoint that its model is not found. */
export const doesNotLoad = (error: unknown): error is TemperFailure =>
  error instanceof TemperFailure && (error.type === 'TrainerRefused' || error.type === 'TrainerLostModel');

/** Returns a model that holds version 0 and is never trained: the reference of a KL penalty. */
export async function referenceModel(context: ModelContext, { loraRank }: Training): Promise<string> {
  const { journal } = context;
  const known = journal.state.referenceId;
  if (known !== null) return known;
  const { path, modelId: referenceId } = await newModelFor(context, 0, loraRank);
  await load(context, referenceId, { path, optimizer: false });
  await journal.write({ referenceId });
  return referenceId;
}

/** Creates a model for the checkpoint of a step, and returns it with the checkpoint's path. */
async function newModelFor({ trainer, journal, signal }: ModelContext, step: number, loraRank: number) {
  const path = (await journal.steps(step, step)).checkpoints[step];
  if (path === undefined) {
    throw new TemperFailure(
      'JournalMismatch',
      `${journal.location}: expected a checkpoint of step ${step}, got none; restore the store, then resume`,
    );
  }
  return { path, modelId: await trainer.createModel({ loraRank, seed: 0 }, signal) };
}

async function load(
  { trainer, journal, signal }: ModelContext,
  modelId: string,
  checkpoint: { readonly path: string; readonly optimizer: boolean },
): Promise<void> {
  await trainer.load(modelId, checkpoint, await journal.nextSequence(modelId), signal);
}

/** The sequence ids of an update's requests. */
export interface UpdateSequences {
  readonly forwardSequence: number;
  readonly optimSequence: number;
  /** The number of datums of each forward_backward. */
  readonly sizes: readonly number[];
}

export async function updateSequences(journal: TrainerJournal, modelId: string, sizes: readonly number[]) {
  const forwardSequence = await journal.nextSequence(modelId, sizes.length + 1);
  return { forwardSequence, optimSequence: forwardSequence + sizes.length, sizes: [...sizes] };
}

export interface UpdateToApply {
  readonly modelId: string;
  readonly data: readonly Datum[];
  readonly sequences: UpdateSequences;
  readonly learningRate: number;
  readonly training: Training;
  readonly signal: AbortSignal;
}

/**
 * Sends forward_backward and, once that has succeeded, optim_step. The trainer executes each once per sequence id. Throws
 * TrainerRefused for a loss or a norm that is not finite.
 */
export async function applyUpdate(
  trainer: Trainer,
  { modelId, data, sequences, learningRate, training, signal }: UpdateToApply,
): Promise<Readonly<Record<string, number>>> {
  const { forwardSequence, optimSequence, sizes } = sequences;
  const { loss, clipLow, clipHigh, gradClipNorm, adamEps: eps } = training;
  const lossConfig =
    loss === 'importance_sampling' ? {} : { clip_low_threshold: clipLow, clip_high_threshold: clipHigh };
  const request = { modelId, sequence: forwardSequence, data, loss, lossConfig };
  const forward = await forwardBackwardInParts(trainer, request, sizes, signal);
  requireFinite(forward.metrics);
  const optim = await trainer.optimStep(
    { modelId, sequence: optimSequence, learningRate, gradClipNorm, eps, ...adam },
    signal,
  );
  requireFinite(optim);
  return { ...forward.metrics, ...optim, ...behaviourGap(data, forward.logprobs) };
}

/** Refuses what weights that are still good cannot cause. Other metrics are only shown, and may have no value. */
export function requireFinite(metrics: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(metrics)) {
    if (!/loss|norm/i.test(name) || Number.isFinite(value)) continue;
    throw new TemperFailure(
      'TrainerRefused',
      `trainer: expected a finite ${name} of the update, got ${value}; no checkpoint of it is made`,
    );
  }
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
