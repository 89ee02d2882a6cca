import { CancellationScope, condition, executeChild, log, workflowInfo } from '@temporalio/workflow';
import { restoring } from '../activities.ts';
import { cancelUntilEnded } from '../cancel-again.ts';
import { stepId } from '../contracts/ids.ts';
import type { RunInput, StepPlan } from '../contracts/run.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { trainingStep } from '../training-step.ts';
import { stopStaleGroups } from './groups.ts';
import { rootMessage } from './root-message.ts';
import type { Ledger } from './tally.ts';

/**
 * What the trainer does for a run, one thing at a time, beside the admission of groups. A step that fails pauses the run, and
 * is done again as it was.
 */
export interface Stepper {
  readonly running: boolean;
  start(plan: StepPlan): void;
  /** An engine that restarted serves its first weights, so that its rollouts wait: gives it those of the last step again. */
  restoreWeights(): void;
  /** What it does was cancelled with the run. */
  untilCancelled(): Promise<void>;
}

export function createStepper(input: RunInput, ledger: Ledger): Stepper {
  let running = false;
  let stepAtWork: string | null = null;

  async function run(plan: StepPlan): Promise<void> {
    try {
      if (!(await isDone(plan))) return;
      // Saves work and no more: a stale group that goes on is dropped when it ends.
      await stopStaleGroups(input, ledger).catch((error) =>
        log.warn('stale groups are left to end by themselves', { error: rootMessage(error) }),
      );
    } finally {
      running = false;
    }
  }

  async function isDone(plan: StepPlan): Promise<boolean> {
    const { workflowId, firstExecutionRunId } = workflowInfo();
    const step = ledger.step + 1;
    stepAtWork = stepId(workflowId, firstExecutionRunId, step);
    const result = await executeStep(input, step, plan).catch((error) => {
      // A cancel is for the run to deal with.
      if (!CancellationScope.current().consideredCancelled)
        ledger.pausedBecause = `step ${step} failed: ${rootMessage(error)}; mend the cause, then resume`;
      return null;
    });
    stepAtWork = null;
    if (result !== null) ledger.finishStep(result);
    return result !== null;
  }

  async function restore(): Promise<void> {
    const { firstExecutionRunId: runKey } = workflowInfo();
    try {
      await restoring.restoreWeights({ runKey, version: ledger.policyVersion, training: input.training });
    } catch (error) {
      // The next step publishes to every engine, and says what is wrong with one.
      log.warn('engines are left as they are until the next step', { error: rootMessage(error) });
    } finally {
      running = false;
    }
  }

  return {
    get running() {
      return running;
    },
    start(plan) {
      running = true;
      void run(plan);
    },
    restoreWeights() {
      running = true;
      void restore();
    },
    async untilCancelled() {
      await cancelUntilEnded(() => (stepAtWork === null ? [] : [stepAtWork]));
      await condition(() => !running);
    },
  };
}

async function executeStep(input: RunInput, step: number, { groups, dropped }: StepPlan) {
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  const { training } = input;
  return executeChild<typeof trainingStep>('trainingStep', {
    workflowId: stepId(run, runKey, step),
    args: [{ run, runKey, step, steps: input.steps, groups, dropped, training }],
    // A step that failed may be done again under its name; one that succeeded never.
    workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    typedSearchAttributes: [
      { key: searchAttributes.run, value: run },
      { key: searchAttributes.step, value: step },
    ],
    staticSummary: `step ${step} of ${input.steps}`,
  });
}
