import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import { condition, isCancellation, workflowInfo } from '@temporalio/workflow';
import { batches, trainer } from '../activities.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { failureKinds, isFailureType } from '../contracts/failures.ts';
import type { RunInput } from '../contracts/run.ts';
import type { RunTally } from './run-tally.ts';
import type { RunView } from './view.ts';

/**
 * Makes version 0 and publishes it. What is wrong with the input ends the run. A failure of trainer or engine pauses it, because
 * what is done of the warm-up is kept.
 */
export async function prepare(input: RunInput, tally: RunTally, view: RunView): Promise<void> {
  view.show();
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  tally.leftOut = await batches.checkRun({ run, runKey, startedAt: tally.startedAt, input });
  for (;;) {
    const beganMs = Date.now();
    try {
      return await makeFirstVersion(input);
    } catch (error) {
      if (isCancellation(error) || !isOutside(error)) throw error;
      tally.pausedBecause = `version 0 could not be made: ${rootMessage(error)}; fix the cause, then resume`;
    } finally {
      tally.addTrainerTime(beganMs);
    }
    view.show();
    await condition(() => tally.pausedBecause === null);
  }
}

async function makeFirstVersion({ seed, tasks, pool, training, settings: { agent }, ...input }: RunInput) {
  const warmUp = input.warmUp ?? null;
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  await trainer.prepareTrainer({ run, runKey, pool, seed, tasks, agent, training, warmUp });
  await trainer.syncWeights({ runKey, pool, version: 0, lastUpdate: 0, training });
}

/** Whether an activity failed for a reason that is not in the input. */
function isOutside(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  const type = error.cause instanceof ApplicationFailure ? error.cause.type : null;
  return !isFailureType(type) || failureKinds[type].outcome === 'infra';
}
