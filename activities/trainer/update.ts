import { type JournaledUpdate, openJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts, requestSizes } from '../../infra/trainer/requests.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import type { Advantages } from '../../workflows/contracts/batch.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { joinAtBoundary } from '../boundary.ts';
import { asBatch } from '../control/batch.ts';
import type { PolicyUpdate, TrainerActivities, UpdatePolicy } from '../interfaces/trainer.ts';
import { toContext, toData } from './data.ts';
import type { TrainerContext, TrainerDependencies } from './dependencies.ts';
import { applyUpdate, modelAt, onLiveModel, referenceModel, updateSequences } from './model.ts';

/**
 * Makes one optimizer update per step, whatever is killed: the intent is on disk first, and the saved checkpoint is the
 * commit point.
 */
export function createUpdate(dependencies: TrainerDependencies): Pick<TrainerActivities, 'update'> {
  return {
    update: (input) =>
      joinAtBoundary(async (signal) => {
        const own = await dependencies.ofRun(input);
        const journal = await openJournal(dependencies.journals, input.runKey);
        return onLiveModel(journal, () => update({ ...dependencies, ...own, journal, signal }, input));
      }),
  };
}

async function update(context: TrainerContext, input: UpdatePolicy): Promise<PolicyUpdate> {
  const { trainer, store, journal, signal } = context;
  const { step, training, runKey } = input;
  const name = policyName(runKey, step);
  const known = (await journal.steps(step, step)).updates[step];
  if (known !== undefined && known.batch !== input.batch.digest) {
    throw new TemperFailure(
      'TrainerRefused',
      `step ${step}: expected the batch ${known.batch}, with which it has begun, got ${input.batch.digest}; cancel this run and start another`,
    );
  }
  if (known?.metrics) return { name, metrics: known.metrics };

  const modelId = await modelAt(context, step - 1, training);
  const intent = await recordIntent(context, modelId, input);
  const metrics = await applyUpdate(trainer, {
    modelId,
    data: (await store.getJson(intent.data)) as readonly Datum[],
    sequences: intent,
    learningRate: intent.learningRate,
    training,
    signal,
  });
  if (step % training.checkpointEvery === 0) {
    const path = await trainer.save(modelId, name, await journal.nextSequence(modelId), signal);
    await journal.write({ checkpoints: { ...journal.state.checkpoints, [step]: path } });
  }
  await journal.write({ step, updates: { ...journal.state.updates, [step]: { ...intent, metrics } } });
  return { name, metrics };
}

/** Journals what will be sent, and under which ids. The data is pinned: a replay sends the same bytes. */
async function recordIntent(context: TrainerContext, modelId: string, input: UpdatePolicy): Promise<JournaledUpdate> {
  const { journal } = context;
  const known = journal.state.updates[input.step];
  if (known?.modelId === modelId) return known;
  const { data, sizes } = known ?? (await pinData(context, input));
  const intent: JournaledUpdate = {
    data,
    modelId,
    batch: input.batch.digest,
    learningRate: learningRateAt(input.training, input.step, input.steps),
    metrics: null,
    ...(await updateSequences(journal, modelId, sizes)),
  };
  await journal.write({ updates: { ...journal.state.updates, [input.step]: intent } });
  return intent;
}

/** Stores the data as it will be sent, and decides how it is divided into requests. */
async function pinData(
  context: TrainerContext,
  { batch: ref, advantages: advantagesRef, training }: UpdatePolicy,
): Promise<Pick<JournaledUpdate, 'data' | 'sizes'>> {
  const { store, requestTokens } = context;
  const batch = asBatch(await store.getJson(ref.digest));
  const advantages = (await store.getJson(advantagesRef.digest)) as Advantages;
  const data = batch.segments.map(toContext);
  const sizes = [...requestSizes(data, requestTokens)];
  const { klCoef: coefficient } = training;
  const kl =
    coefficient === 0 ? null : { coefficient, reference: await referenceLogprobs(context, training, data, sizes) };
  return { data: (await store.putJson(toData(batch, advantages, kl))).digest, sizes };
}

async function referenceLogprobs(
  context: TrainerContext,
  training: UpdatePolicy['training'],
  data: readonly Datum[],
  sizes: readonly number[],
): Promise<readonly (readonly number[])[]> {
  const { trainer, journal, signal } = context;
  const modelId = await referenceModel(context, training);
  const sequence = await journal.nextSequence(modelId, sizes.length);
  const request = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
  return (await forwardBackwardInParts(trainer, request, sizes, signal)).logprobs;
}
