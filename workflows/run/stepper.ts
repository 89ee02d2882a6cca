import { CancellationScope, condition, executeChild, workflowInfo } from '@temporalio/workflow';
import { stepId } from '../contracts/ids.ts';
import type { RunInput } from '../contracts/run.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { trainingStep } from '../training-step.ts';
import { stopStaleGroups } from './groups.ts';
import type { Ledger } from './ledger.ts';
import { rootMessage } from './root-message.ts';

/** Does one step at a time beside the admission of groups. A step that fails pauses the run; its groups are not lost. */
export interface Stepper {
  readonly running: boolean;
  start(groups: readonly number[]): void;
  settled(): Promise<void>;
}

export function createStepper(input: RunInput, ledger: Ledger): Stepper {
  let running = false;

  async function run(groups: readonly number[]): Promise<void> {
    const step = ledger.step + 1;
    try {
      ledger.finishStep(await executeStep(input, ledger, step, groups));
      await stopStaleGroups(input, ledger);
    } catch (error) {
      if (CancellationScope.current().consideredCancelled) {
        for (const index of groups) ledger.drop(index, 'cancelled');
        return;
      }
      if (ledger.step === step) throw error;
      ledger.putBack(groups);
      ledger.pausedBecause = `step ${step} failed: ${rootMessage(error)}; mend the cause, then resume`;
    } finally {
      running = false;
    }
  }

  return {
    get running() {
      return running;
    },
    start(groups) {
      running = true;
      void run(groups);
    },
    settled: () => condition(() => !running),
  };
}

async function executeStep(input: RunInput, ledger: Ledger, step: number, groups: readonly number[]) {
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  const { training } = input;
  return executeChild<typeof trainingStep>('trainingStep', {
    workflowId: stepId(run, runKey, step),
    args: [{ run, runKey, step, steps: input.steps, groups, dropped: ledger.takeDropped(), training }],
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
