import { setTimeout as sleep } from 'node:timers/promises';
import { log } from '@temporalio/activity';
import { openJournal } from '../../infra/trainer/journal.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { PrepareTrainer, TrainerActivities } from '../interfaces/trainer.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { onLiveModel } from './model.ts';
import { unloadAllBut, unloadEndedRuns } from './unload.ts';
import { type PreparationContext, removeWarmUpCheckpoints, warmedModel } from './warm-up.ts';

/** Creates the run's model at version 0: base weights, then the supervised warm-up if requested; saved as checkpoint 0. */
export function createPreparation(dependencies: TrainerDependencies): Pick<TrainerActivities, 'prepareTrainer'> {
  return {
    prepareTrainer: (input) =>
      joinAtBoundary(async (signal, report) => {
        const journal = await openJournal(dependencies.journals, input.runKey);
        const own = await dependencies.ofRun(input);
        const context: PreparationContext = { ...dependencies, ...own, journal, signal, report, checkpointAfterMs };
        if (!journal.state.prepared) {
          await unloadEndedRuns(dependencies, input.runKey, signal);
          await prepareWithPatience(context, input);
        }
        return { metrics: journal.state.prepareMetrics };
      }),
  };
}

const checkpointAfterMs = 1_000;
/** The time for which an attempt waits for a trainer that is away, since the last new step of the warm-up. */
const patienceMs = 60_000;
const pauseMs = 500;

/**
 * Prepares a run through restarts of its trainer. The pauses between activity attempts grow with each: after some restarts they would
 * take longer than the warm-up.
 */
export async function prepareWithPatience(context: PreparationContext, input: PrepareTrainer): Promise<void> {
  const { journal, signal } = context;
  let most = -1;
  let sinceMs = performance.now();
  for (;;) {
    try {
      return await onLiveModel(journal, () => prepare(context, input));
    } catch (error) {
      if (!(error instanceof TemperFailure) || !transient.includes(error.type)) throw error;
      const { warmUpSteps } = journal.state;
      if (warmUpSteps > most) sinceMs = performance.now();
      most = Math.max(most, warmUpSteps);
      if (performance.now() - sinceMs > patienceMs) throw error;
      log.info('the trainer is away; temper waits for it', { warmUpSteps, error: error.message });
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

const transient: readonly string[] = ['TrainerUnavailable', 'TrainerLostModel'];

async function prepare(context: PreparationContext, input: PrepareTrainer): Promise<void> {
  const { trainer, journal, signal } = context;
  const modelId = await warmedModel(context, input);
  const sequence = await journal.nextSequence(modelId);
  const path = await trainer.save(modelId, policyName(input.runKey, 0), sequence, signal);
  await journal.write({ prepared: true, checkpoints: { 0: path }, step: 0, modelId: null });
  // Version 0 is loaded into a new model, so that the warm-up's optimizer moments don't steer the first updates.
  await unloadAllBut(context, []);
  await removeWarmUpCheckpoints(context, 0);
}
