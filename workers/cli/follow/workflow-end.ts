import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { errorMessage, rootCause } from '../../../workflows/contracts/error-message.ts';
import type { WorkflowEnd } from '../../../workflows/contracts/workflow-end.ts';

/** Reads the error of a workflow's result; null for an error about something else, such as a lost connection. */
export function workflowEnd(error: unknown): WorkflowEnd | null {
  if (!(error instanceof WorkflowFailedError)) return null;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { kind: 'cancelled', message: 'cancelled' };
  if (cause instanceof TerminatedFailure) return { kind: 'terminated', message: 'terminated from outside' };
  const refused = cause instanceof ApplicationFailure && cause.type === 'InvalidInput';
  return { kind: refused ? 'refused' : 'failed', message: errorMessage(rootCause(error)) };
}

/** Waits for the end of a workflow and reads why it has no result; null if it has one. */
export async function endOf(handle: Pick<WorkflowHandle, 'result'>): Promise<WorkflowEnd | null> {
  try {
    await handle.result();
    return null;
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    return end;
  }
}
