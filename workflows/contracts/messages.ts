import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { Budget, BudgetChange } from './budget.ts';
import type { GroupSummary } from './group.ts';
import type { Outcome } from './outcome.ts';
import type { RegradeStatus } from './regrade.ts';
import type { Stage } from './rollout.ts';
import type { RunStatus } from './run.ts';
import type { SweepStatus } from './sweep.ts';

/**
 * Stops starting new work; what runs continues. Takes an optional reason. With `unless-paused`, runs, sweeps and regrades that
 * are paused keep the reason that they have.
 */
export const pauseSignal = defineSignal<[reason?: string, when?: 'unless-paused']>('pause');
/** Continues after a pause. With a reason, runs, sweeps and regrades continue only if they are paused for that reason. */
export const resumeSignal = defineSignal<[onlyIfPausedBecause?: string]>('resume');

/** Changes limits of the budget of a run or a sweep, and returns the new budget. */
export const setBudgetUpdate = defineUpdate<Budget, [BudgetChange]>('setBudget');

/** Skips the step of a run that failed, and resumes the run. Refused unless a step has failed. */
export const skipStepUpdate = defineUpdate<SkippedStep>('skipStep');

/** A step that is skipped, with the number of its groups. */
export interface SkippedStep {
  readonly step: number;
  readonly groups: number;
}

/** The report of a group to its run: every rollout of the group has its outcome. */
export const groupDoneSignal = defineSignal<[GroupSummary]>('groupDone');

/** Asks a run's group, and the group's rollouts, to clean up and end now with this outcome. */
export const stopSignal = defineSignal<[outcome: Extract<Outcome, 'stale' | 'cancelled'>]>('stop');

/**
 * Tells the rollouts of a host, by its name, that the host was declared lost. They begin again elsewhere. With a generation, those
 * stay that a later life of the host has placed.
 */
export const hostLostSignal = defineSignal<[host: string, generation: number]>('hostLost');

export const runStatusQuery = defineQuery<RunStatus>('status');
export const sweepStatusQuery = defineQuery<SweepStatus>('status');
export const regradeStatusQuery = defineQuery<RegradeStatus>('status');
export const rolloutStatusQuery = defineQuery<RolloutStatus>('rolloutStatus');

/** The state of a rollout: the answer of the query `rolloutStatus`. */
export interface RolloutStatus {
  readonly stage: Stage | 'done';
  readonly paused: boolean;
  readonly epoch: number;
  readonly host: string | null;
  readonly outcome: Outcome | null;
  readonly reward: number | null;
}
