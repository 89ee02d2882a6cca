import { ActivityFailure, ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { rootCause, rootMessage } from '../contracts/error-message.ts';
import type { FailureType } from '../contracts/failures.ts';

/** The activities of a step that come after its update, which can't be left out then. */
const afterUpdate: readonly string[] = ['syncWeights', 'recordStep'];

/** Says for people why a step has failed and what to do. Skipping is offered only where it can help. */
export function whyFailed(step: number, { isSkipped }: { readonly isSkipped: boolean }, error: unknown): string {
  if (error instanceof WorkflowExecutionAlreadyStartedError)
    return (
      `step ${step} exists already: the run was reset to before the end of that step, and no step is made twice; ` +
      'reset the run to a later event, or cancel it and start another'
    );
  const activity = activityOf(error);
  const message = rootMessage(error);
  if (isSkipped) {
    const isRefused = activity === 'skipUpdate' && hasType(error, 'TrainerRefused');
    return `step ${step} could not be skipped: ${message}${isRefused ? '' : '; skip it again, or resume to make it'}`;
  }
  const canSkip = !afterUpdate.includes(activity) && !hasType(error, 'JournalMismatch');
  return `step ${step} failed: ${message}; fix the cause, then resume${canSkip ? ', or leave the step out with --skip-step' : ''}`;
}

/** Returns the activity that failed; an empty text if it is not known. */
function activityOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof ActivityFailure) return cause.activityType;
  return '';
}

function hasType(error: unknown, type: FailureType): boolean {
  const root = rootCause(error);
  return root instanceof ApplicationFailure && root.type === type;
}
