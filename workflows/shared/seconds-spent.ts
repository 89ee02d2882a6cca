import { ActivityFailure, ApplicationFailure, CancelledFailure, TimeoutFailure } from '@temporalio/workflow';
import { readSpentSeconds } from '../contracts/spent-time.ts';

/** Returns the seconds that a stage ran before it failed or was cancelled, as far as its host has reported them. */
export function secondsSpent(error: unknown): number {
  if (!(error instanceof ActivityFailure)) return 0;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) return readSpentSeconds(cause.lastHeartbeatDetails);
  const reports = cause instanceof ApplicationFailure || cause instanceof CancelledFailure;
  return reports ? readSpentSeconds(cause.details?.[0]) : 0;
}
