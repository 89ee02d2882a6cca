import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  isCancellation,
  TimeoutFailure,
} from '@temporalio/workflow';
import { readAgentProgress } from '../contracts/agent-progress.ts';
import { type FailureRecord, type FailureType, isFailureType } from '../contracts/failures.ts';
import type { Stage } from '../contracts/rollout.ts';

/** A stage that failed for good, attributed to a failure type. It carries no stack, because it becomes data. */
export class StageFailure extends Error {
  readonly record: FailureRecord & { readonly stage: Stage };
  /** Whether the stage never began, because no worker took it in time. */
  readonly neverStarted: boolean;
  /** Whether a worker reported it, rather than the server noticed that there was none. */
  readonly reported: boolean;

  constructor(record: StageFailure['record'], neverStarted: boolean, reported = false) {
    super(record.message);
    this.record = record;
    this.neverStarted = neverStarted;
    this.reported = reported;
  }
}

/** Stages in the rollout's own sandbox. If their worker stops answering, the sandbox and what ran in it are lost. */
const stagesInSandbox: readonly Stage[] = ['provisionSandbox', 'startAgent', 'awaitAgent', 'captureDiff'];

/**
 * Stages of the rollout's own host beside the sandbox. If no worker takes them, the session is lost with the host. Only an
 * evaluation in the agent's own sandbox is bound to a host.
 */
const stagesOnHost: readonly Stage[] = ['openTrace', 'sealTrace', 'evaluate'];

/**
 * Turns Temporal's failure of a stage into a `StageFailure`. Returns every other error unchanged: a cancellation ends the
 * rollout, and a bug in a workflow must fail the workflow task and wait for a fixed worker.
 */
export function attributed(ofActivity: Stage, error: unknown): unknown {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) return error;
  if (endedByCancel(error)) return new CancelledFailure(`${ofActivity} was not tried again after a cancel`, [], error);
  const { cause } = error;
  const stage = reportedStage(cause) ?? ofActivity;
  if (cause instanceof TimeoutFailure) {
    const neverStarted = cause.timeoutType === 'SCHEDULE_TO_START';
    const message = neverStarted
      ? 'no host worker took the stage in time'
      : `the stage's worker stopped answering (${cause.timeoutType})`;
    const isLost = stagesInSandbox.includes(stage) || (neverStarted && stagesOnHost.includes(stage));
    const type = isLost ? 'HostLost' : 'WorkerLost';
    return new StageFailure({ type, message, stage }, neverStarted);
  }
  const known = cause instanceof ApplicationFailure && isFailureType(cause.type);
  const type: FailureType = known ? (cause.type as FailureType) : 'Internal';
  return new StageFailure({ type, message: shorten(cause?.message ?? error.message), stage }, false, known);
}

/** The stage that was in progress in an activity that has several. */
function reportedStage(cause: unknown): Stage | undefined {
  if (cause instanceof TimeoutFailure) return readAgentProgress(cause.lastHeartbeatDetails)?.stage;
  return cause instanceof ApplicationFailure ? readAgentProgress(cause.details?.[0])?.stage : undefined;
}

/**
 * Whether the server did not try the stage again because a cancel was requested. The activity attempt's failure, for example
 * a time-out because its worker is dead, then says nothing about the stage, which would have been tried again.
 */
const endedByCancel = ({ retryState }: ActivityFailure): boolean => retryState === 'CANCEL_REQUESTED';

/** Shortens a message so that it fits into history, memo and UI. */
function shorten(message: string): string {
  return message.length <= 500 ? message : `${message.slice(0, 500)}…`;
}

const lossTypes: readonly string[] = ['HostLost', 'SandboxLost', 'SandboxConflict', 'AgentStateUnknown'];

/** Whether a failure is the loss of the agent's sandbox, after which a rollout begins again in another. */
export const isSandboxLost = (error: StageFailure): boolean => lossTypes.includes(error.record.type);
