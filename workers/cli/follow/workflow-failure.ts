import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure } from '@temporalio/common';

/** Why a workflow has no result, in the words of what went wrong first. */
export interface WorkflowEnd {
  readonly kind: 'cancelled' | 'terminated' | 'refused' | 'failed';
  readonly message: string;
}

/** Null for an error that says nothing about the workflow, such as a lost connection. */
export function workflowEnd(error: unknown): WorkflowEnd | null {
  if (!(error instanceof WorkflowFailedError)) return null;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { kind: 'cancelled', message: 'cancelled' };
  if (cause instanceof TerminatedFailure) return { kind: 'terminated', message: 'terminated from outside' };
  const refused = cause instanceof ApplicationFailure && cause.type === 'InvalidInput';
  return { kind: refused ? 'refused' : 'failed', message: rootMessage(cause ?? error) };
}

function rootMessage(error: Error): string {
  return error.cause instanceof Error ? rootMessage(error.cause) : error.message;
}
