import { CancellationScope, condition, executeChild, isCancellation, log, workflowInfo } from '@temporalio/workflow';
import { restoring as restoringActivities } from '../activities.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { stepId } from '../contracts/ids.ts';
import type { RunInput } from '../contracts/run.ts';
import type { StepPlan } from '../contracts/run-state.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import { cancelUntilEnded } from '../shared/cancel-again.ts';
import type { trainingStep } from '../training-step.ts';
import { stopStaleGroups } from './groups.ts';
import type { RunTally } from './run-tally.ts';
import { whyFailed } from './why-failed.ts';

/**
 * The trainer's work for a run, one thing at a time, beside the admission of groups. A step that fails pauses the run, and is
 * repeated with the same groups after the resume.
 */
export interface Stepper {
  /** Whether the trainer works for the run. */
  readonly running: boolean;
  readonly makesStep: boolean;
  /** Starts a step. Weights that are being restored are given up for it, because the step publishes its own. */
  start(plan: StepPlan): void;
  /** Publishes the last step's weights to engines that restarted with their first weights, so that rollouts need not wait. */
  restoreWeights(): void;
  /** Waits until the work that was cancelled with the run has ended. */
  untilCancelled(): Promise<void>;
}

export function createStepper(input: RunInput, tally: RunTally): Stepper {
  let makesStep = false;
  let currentStep: string | null = null;
  let restoring: CancellationScope | null = null;

  async function run(plan: StepPlan): Promise<void> {
    try {
      restoring?.cancel();
      await CancellationScope.nonCancellable(() => condition(() => restoring === null));
      if (!(await isDone(plan))) return;
      // This only saves work: a stale group that continues is dropped when it ends.
      await stopStaleGroups(input, tally).catch((error) =>
        log.warn('stale groups could not be stopped and run to their end', { error: rootMessage(error) }),
      );
    } finally {
      makesStep = false;
    }
  }

  async function isDone(plan: StepPlan): Promise<boolean> {
    const { workflowId, firstExecutionRunId } = workflowInfo();
    const step = tally.step + 1;
    currentStep = stepId(workflowId, firstExecutionRunId, step);
    const beganMs = Date.now();
    const { last: lastUpdate, made: updates } = tally.updates;
    const result = await executeStep(input, { step, lastUpdate, updates, plan }).catch((error) => {
      // The run itself handles a cancel.
      if (!CancellationScope.current().consideredCancelled) {
        tally.failStep(rootMessage(error), whyFailed(step, plan, error));
      }
      return null;
    });
    currentStep = null;
    tally.addTrainerTime(beganMs);
    if (result !== null) tally.finishStep(result);
    return result !== null;
  }

  async function restore(scope: CancellationScope): Promise<void> {
    const { firstExecutionRunId: runKey } = workflowInfo();
    const { policyVersion: version, updates } = tally;
    const { pool, training } = input;
    try {
      await scope.run(() =>
        restoringActivities.restoreWeights({ runKey, pool, version, lastUpdate: updates.last, training }),
      );
    } catch (error) {
      // The next step publishes to every engine, and reports what is wrong with one.
      if (!isCancellation(error))
        log.warn('weights could not be restored before the next step', { error: rootMessage(error) });
    } finally {
      restoring = null;
    }
  }

  return {
    get running() {
      return makesStep || restoring !== null;
    },
    get makesStep() {
      return makesStep;
    },
    start(plan) {
      makesStep = true;
      void run(plan);
    },
    restoreWeights() {
      restoring = new CancellationScope();
      void restore(restoring);
    },
    async untilCancelled() {
      await cancelUntilEnded(() => (currentStep === null ? [] : [currentStep]));
      await condition(() => !makesStep && restoring === null);
    },
  };
}

interface StepToExecute {
  readonly step: number;
  readonly lastUpdate: number;
  readonly updates: number;
  readonly plan: StepPlan;
}

async function executeStep(input: RunInput, { plan, ...made }: StepToExecute) {
  const { groups, dropped, failure, isSkipped } = plan;
  const skippedBecause = isSkipped ? failure : null;
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  const { steps, training, pool, onFlag } = input;
  const { step } = made;
  return executeChild<typeof trainingStep>('trainingStep', {
    workflowId: stepId(run, runKey, step),
    args: [{ run, runKey, ...made, steps, groups, dropped, skippedBecause, training, onFlag, pool }],
    // A step that failed may be repeated under its name; one that succeeded is never repeated.
    workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    typedSearchAttributes: [
      { key: searchAttributes.run, value: run },
      { key: searchAttributes.step, value: step },
    ],
    staticSummary: `step ${step} of ${steps}`,
  });
}
