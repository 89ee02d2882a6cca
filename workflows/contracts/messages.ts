import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { GroupSummary } from './group.ts';
import type { Outcome } from './outcome.ts';
import type { RegradeStatus } from './regrade.ts';
import type { Stage } from './rollout.ts';
import type { RunStatus } from './run.ts';
import type { SweepStatus } from './sweep.ts';

/** Stops starting new work; what runs goes on. Takes an optional reason. */
export const pauseSignal = defineSignal<[reason?: string]>('pause');
export const resumeSignal = defineSignal('resume');

/** group → run: every rollout of the group has its outcome. */
export const groupDoneSignal = defineSignal<[GroupSummary]>('groupDone');

/** run → group → rollout: end now with this outcome; clean up first. */
export const stopSignal = defineSignal<[outcome: Extract<Outcome, 'stale' | 'cancelled'>]>('stop');

/** Of a run. */
export const runStatusQuery = defineQuery<RunStatus>('status');

/** Of a sweep. */
export const sweepStatusQuery = defineQuery<SweepStatus>('status');

/** Of a regrade. */
export const regradeStatusQuery = defineQuery<RegradeStatus>('status');

export interface RolloutStatus {
  readonly stage: Stage | 'done';
  readonly paused: boolean;
  readonly epoch: number;
  readonly host: string | null;
  readonly outcome: Outcome | null;
  readonly reward: number | null;
}
export const rolloutStatusQuery = defineQuery<RolloutStatus>('rolloutStatus');
