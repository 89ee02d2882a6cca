import { type JournaledUpdate, openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts, requestSizes } from '../../infra/trainer/requests.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import type { Advantages, Batch } from '../../workflows/contracts/batch.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { atBoundary, joinAtBoundary } from '../boundary.ts';
import { asBatch } from '../control/batch.ts';
import type { PolicyUpdate, TrainerActivities, UpdatePolicy } from '../interfaces/trainer.ts';
import { toContext, toData } from './data.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { applyUpdate, type ModelContext, modelAt, onLiveModel, referenceModel, updateSequences } from './model.ts';

/**
 * Makes one optimizer update per step, whatever is killed: the intent is on disk first, and the saved checkpoint is the
 * commit point.
 */
export function createUpdate(dependencies: TrainerDependencies): Pick<TrainerActivities, 'update' | 'skipUpdate'> {
  return {
    update: (input) =>
      joinAtBoundary(async (signal) => {
        const own = await dependencies.ofRun(input);
        const journal = await openJournal(dependencies.journals, input.runKey);
        return onLiveModel(journal, () => updatePolicy({ ...dependencies, ...own, journal, signal }, input));
      }),
    skipUpdate: ({ runKey, step }) =>
      atBoundary(async () => skipUpdate(await openJournal(dependencies.journals, runKey), step)),
  };
}

export async function updatePolicy(context: ModelContext, input: UpdatePolicy): Promise<PolicyUpdate> {
  const { trainer, journal, signal } = context;
  const { step, training, runKey, lastUpdate } = input;
  const name = policyName(runKey, step);
  const known = (await journal.steps(step, step)).updates[step];
  if (known !== undefined && known.batch !== input.batch.digest) {
    throw new TemperFailure(
      'TrainerRefused',
      `step ${step}: expected the batch ${known.batch}, with which it has begun, got ${input.batch.digest}; cancel this run and start another`,
    );
  }
  if (known?.metrics) return { name, metrics: known.metrics };

  const modelId = await modelAt(context, { step: step - 1, lastUpdate, continued: step }, training);
  const { intent, data } = await recordIntent(context, modelId, input);
  const { learningRate } = intent;
  const metrics = await applyUpdate(trainer, { modelId, data, sequences: intent, learningRate, training, signal });
  const { checkpoints, updates } = journal.state;
  const saved =
    step % training.checkpointEvery === 0
      ? { [step]: await trainer.save(modelId, name, await journal.nextSequence(modelId), signal) }
      : {};
  await journal.write({
    step,
    checkpoints: { ...checkpoints, ...saved },
    updates: { ...updates, [step]: { ...intent, metrics } },
  });
  return { name, metrics };
}

/**
 * Forgets the update of a step that has begun and was not made. The live model may hold a part of it, and is forgotten as well.
 * Throws TrainerRefused if the update was made, because engines may serve its weights already.
 */
export async function skipUpdate(journal: TrainerJournal, step: number): Promise<void> {
  const known = (await journal.steps(step, step)).updates[step];
  if (known === undefined) return;
  if (known.metrics !== null) {
    throw new TemperFailure(
      'TrainerRefused',
      `step ${step}: its update is made and can't be skipped; resume without --skip-step`,
    );
  }
  const { [step]: _, ...updates } = journal.state.updates;
  await journal.write({ modelId: null, updates });
}

/** Journals what will be sent, and under which ids. The data is pinned: a replay sends the same bytes. */
async function recordIntent(context: ModelContext, modelId: string, input: UpdatePolicy) {
  const { journal, store, requestTokens } = context;
  const known = journal.state.updates[input.step];
  const digest = known?.data ?? (await pinData(context, input));
  const data = (await store.getJson(digest)) as readonly Datum[];
  if (known?.modelId === modelId) return { intent: known, data };
  const intent: JournaledUpdate = {
    data: digest,
    modelId,
    batch: input.batch.digest,
    learningRate: learningRateAt(input.training, input.update, input.mostUpdates),
    metrics: null,
    // Another model takes requests of today's size: the limit may have been lowered because the last one ran out of memory.
    ...(await updateSequences(journal, modelId, requestSizes(data, requestTokens))),
  };
  await journal.write({ updates: { ...journal.state.updates, [input.step]: intent } });
  return { intent, data };
}

/** Stores the data as it will be sent, and returns its digest. */
async function pinData(
  context: ModelContext,
  { batch: ref, advantages: advantagesRef, training }: UpdatePolicy,
): Promise<string> {
  const { store } = context;
  const batch = asBatch(await store.getJson(ref.digest));
  const advantages = (await store.getJson(advantagesRef.digest)) as Advantages;
  const { klCoef: coefficient } = training;
  const kl = coefficient === 0 ? null : { coefficient, reference: await referenceLogprobs(context, training, batch) };
  return (await store.putJson(toData(batch, advantages, kl))).digest;
}

async function referenceLogprobs(
  context: ModelContext,
  training: UpdatePolicy['training'],
  batch: Batch,
): Promise<readonly (readonly number[])[]> {
  const { trainer, journal, signal, requestTokens } = context;
  const data = batch.segments.map(toContext);
  const sizes = requestSizes(data, requestTokens);
  const modelId = await referenceModel(context, training);
  const sequence = await journal.nextSequence(modelId, sizes.length);
  const request = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
  return (await forwardBackwardInParts(trainer, request, sizes, signal)).logprobs;
}
