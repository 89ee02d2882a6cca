import { ActivityFailure, ApplicationFailure, isCancellation, TimeoutFailure } from '@temporalio/workflow';
import { type FailureRecord, type FailureType, isFailureType } from '../contracts/failures.ts';
import type { Stage } from '../contracts/rollout.ts';

/** A stage that failed for good, attributed; carries no stack, because it becomes data. */
export class StageFailure extends Error {
  readonly record: FailureRecord;
  /** The stage never began: no worker took it in time. */
  readonly neverStarted: boolean;

  constructor(record: FailureRecord, neverStarted: boolean) {
    super(record.message);
    this.record = record;
    this.neverStarted = neverStarted;
  }
}

/** In the rollout's own sandbox: when nobody answers for one of them, the sandbox and what ran in it are lost. */
const inTheSandbox: readonly Stage[] = ['provisionSandbox', 'startAgent', 'awaitAgent', 'captureDiff'];

/**
 * Reads what Temporal says of a stage. Cancellation and what is no activity's failure (a bug in a workflow) is thrown on
 * as it is: the first ends the rollout, the second must fail the workflow task and wait for a fixed worker.
 */
export function attributed(stage: Stage, error: unknown): unknown {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) return error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) {
    const neverStarted = cause.timeoutType === 'SCHEDULE_TO_START';
    const message = neverStarted
      ? 'no host worker took the stage in time'
      : `the stage's worker stopped answering (${cause.timeoutType})`;
    const type = inTheSandbox.includes(stage) ? 'HostLost' : 'WorkerLost';
    return new StageFailure({ type, message, stage }, neverStarted);
  }
  const known = cause instanceof ApplicationFailure && isFailureType(cause.type);
  const type: FailureType = known ? (cause.type as FailureType) : 'Internal';
  return new StageFailure({ type, message: shorten(cause?.message ?? error.message), stage }, false);
}

/** A message stays small enough for history, memo and UI. */
function shorten(message: string): string {
  return message.length <= 500 ? message : `${message.slice(0, 500)}…`;
}
