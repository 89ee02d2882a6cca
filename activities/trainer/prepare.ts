import { log } from '@temporalio/activity';
import { openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import type { WarmUp } from '../../workflows/contracts/run.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { PrepareTrainer, TrainerActivities, WarmUpProgress } from '../interfaces/trainer.ts';
import type { TrainerContext, TrainerDependencies } from './dependencies.ts';
import { adam, onLiveModel } from './model.ts';
import { unloadAllBut, unloadEndedRuns } from './unload.ts';

/** Creates the run's model at version 0: base weights, then the supervised warm-up if requested; saved as checkpoint 0. */
export function createPreparation(dependencies: TrainerDependencies): Pick<TrainerActivities, 'prepareTrainer'> {
  return {
    prepareTrainer: (input) =>
      joinAtBoundary(async (signal, report) => {
        const journal = await openJournal(dependencies.journals, input.runKey);
        const own = await dependencies.ofRun(input);
        const context: PreparationContext = { ...dependencies, ...own, journal, signal, report };
        if (!journal.state.prepared) {
          await unloadEndedRuns(dependencies, input.runKey, signal);
          await onLostWarmUp(journal, () => prepare(context, input));
        }
        return { metrics: journal.state.prepareMetrics };
      }),
  };
}

interface PreparationContext extends TrainerContext {
  readonly report: (progress: WarmUpProgress) => void;
}

/** Restarts the warm-up when its model is lost, because there is no checkpoint yet to return to. */
const onLostWarmUp = (journal: TrainerJournal, work: () => Promise<void>): Promise<void> =>
  onLiveModel(journal, work).catch(async (error) => {
    if (journal.state.modelId === null) await journal.write({ warmUpSteps: 0 });
    throw error;
  });

async function prepare(context: PreparationContext, input: PrepareTrainer): Promise<void> {
  const { trainer, journal, signal } = context;
  const { loraRank } = input.training;
  let { modelId } = journal.state;
  if (modelId === null) {
    modelId = await trainer.createModel({ loraRank, seed: input.seed }, signal);
    await journal.write({ modelId, warmUpSteps: 0, pool: input.pool });
  }
  if (input.warmUp !== null) await warmUp(context, { modelId, input, settings: input.warmUp });
  const sequence = await journal.nextSequence(modelId);
  const path = await trainer.save(modelId, policyName(input.runKey, 0), sequence, signal);
  await journal.write({ prepared: true, checkpoints: { 0: path }, step: 0, modelId: null });
  // Version 0 is loaded into a new model, so that the warm-up's optimizer moments don't steer the first updates.
  await unloadAllBut(context, []);
}

const warmUpOptimizer = { ...adam, eps: 1e-8, gradClipNorm: 1 } as const;

async function warmUp(
  { trainer, demonstrations, journal, signal, report }: PreparationContext,
  {
    modelId,
    input: { tasks, agent, seed },
    settings,
  }: { readonly modelId: string; readonly input: PrepareTrainer; readonly settings: WarmUp },
): Promise<void> {
  const { examplesPerStep: count, rightShare, traces = null } = settings;
  const examplesOf = (step: number) => demonstrations({ tasks, agent, seed, step, count, rightShare, traces });
  let data = await examplesOf(journal.state.warmUpSteps);
  for (let step = journal.state.warmUpSteps; step < settings.steps; step += 1) {
    // Ids follow from the step alone, so a retry after a crash repeats exactly the step that was under way.
    const sequence = 2 * step + 1;
    const forward = trainer.forwardBackward({ modelId, sequence, data, loss: 'cross_entropy' }, signal);
    // The next examples are rendered while the trainer works on these.
    const [result, next] = await Promise.all([forward, examplesOf(step + 1)]);
    data = next;
    const learningRate = learningRateAt(settings, step + 1, settings.steps);
    await trainer.optimStep({ modelId, sequence: sequence + 1, learningRate, ...warmUpOptimizer }, signal);
    await journal.write({
      warmUpSteps: step + 1,
      sequences: { ...journal.state.sequences, [modelId]: sequence + 1 },
      prepareMetrics: { warmUpSteps: step + 1, ...result.metrics },
    });
    report({ warmUpStep: step + 1, of: settings.steps });
    if ((step + 1) % 25 === 0) log.info('warm-up', { step: step + 1, of: settings.steps, ...result.metrics });
  }
}
