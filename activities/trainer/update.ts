import { type JournaledUpdate, openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import { forwardBackwardInParts, requestSizes } from '../../infra/trainer/requests.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import type { Advantages } from '../../workflows/contracts/batch.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { atBoundary } from '../boundary.ts';
import { asBatch } from '../control/batch.ts';
import type { PolicyUpdate, TrainerActivities, UpdatePolicy } from '../interfaces.ts';
import { toContext, toData } from './data.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { applyUpdate, modelAt, onLiveModel, referenceModel, updateSequences } from './model.ts';

/** One optimizer update per step, whatever is killed: intent on disk first, the saved checkpoint is the commit point. */
export function createUpdate(dependencies: TrainerDependencies): Pick<TrainerActivities, 'update'> {
  return {
    update: (input) =>
      atBoundary(async (signal) => {
        const journal = await openJournal(dependencies.journalRoot, input.runKey);
        return onLiveModel(journal, () => update(dependencies, journal, input, signal));
      }),
  };
}

async function update(
  dependencies: TrainerDependencies,
  journal: TrainerJournal,
  input: UpdatePolicy,
  signal: AbortSignal,
): Promise<PolicyUpdate> {
  const { trainer, store } = dependencies;
  const { step, training, runKey } = input;
  const name = policyName(runKey, step);
  const known = journal.state.updates[step];
  if (known !== undefined && known.batch !== input.batch.digest) {
    throw new TemperFailure(
      'TrainerRefused',
      `step ${step}: expected the batch ${known.batch}, with which it has begun, got ${input.batch.digest}; cancel this run and start another`,
    );
  }
  if (known?.metrics) return { name, metrics: known.metrics };

  const modelId = await modelAt(dependencies, journal, step - 1, training, signal);
  const intent = await intend(dependencies, journal, modelId, input, signal);
  const data = (await store.getJson(intent.data)) as readonly Datum[];
  const metrics = await applyUpdate(trainer, modelId, intent, data, training, signal);
  if (step % training.checkpointEvery === 0) {
    const path = await trainer.save(modelId, name, await journal.nextSequence(modelId), signal);
    await journal.write({ checkpoints: { ...journal.state.checkpoints, [step]: path } });
  }
  await journal.write({ step, updates: { ...journal.state.updates, [step]: { ...intent, metrics } } });
  return { name, metrics };
}

/** What will be sent, and under which ids. The data are pinned: a replay sends the same bytes. */
async function intend(
  dependencies: TrainerDependencies,
  journal: TrainerJournal,
  modelId: string,
  input: UpdatePolicy,
  signal: AbortSignal,
): Promise<JournaledUpdate> {
  const known = journal.state.updates[input.step];
  if (known?.modelId === modelId) return known;
  const { data, sizes } = known ?? (await pinData(dependencies, journal, input, signal));
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

/** The data as they will be sent, and in how many requests. */
async function pinData(
  dependencies: TrainerDependencies,
  journal: TrainerJournal,
  { batch: ref, advantages, training }: UpdatePolicy,
  signal: AbortSignal,
): Promise<Pick<JournaledUpdate, 'data' | 'sizes'>> {
  const { store, requestTokens } = dependencies;
  const batch = asBatch(await store.getJson(ref.digest));
  const given = (await store.getJson(advantages.digest)) as Advantages;
  const context = batch.segments.map(toContext);
  const sizes = [...requestSizes(context, requestTokens)];
  const { klCoef: coefficient } = training;
  const kl = coefficient === 0 ? null : { coefficient, reference: await underReference(context, sizes) };
  return { data: (await store.putJson(toData(batch, given, kl))).digest, sizes };

  async function underReference(data: readonly Datum[], sizes: readonly number[]) {
    const modelId = await referenceModel(dependencies, journal, training, signal);
    const sequence = await journal.nextSequence(modelId, sizes.length);
    const request = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
    return (await forwardBackwardInParts(dependencies.trainer, request, sizes, signal)).logprobs;
  }
}
