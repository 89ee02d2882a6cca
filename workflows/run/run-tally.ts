import type { Budget } from '../contracts/budget.ts';
import type { RunCost } from '../contracts/cost.ts';
import type { GroupSummary } from '../contracts/group.ts';
import type { Count, Fate, Outcome } from '../contracts/outcome.ts';
import type { StepResult, TasksLeftOut } from '../contracts/run.ts';
import type { RunState, StepPlan } from '../contracts/run-state.ts';
import type { Pausable } from '../shared/pause.ts';
import type { FlagWatch } from './flag-watch.ts';
import type { RecentGroups } from './recent-groups.ts';
import type { StaleWatch } from './stale-watch.ts';
import type { UpdateWatch } from './update-watch.ts';

/**
 * The bookkeeping of a run. Every group that it started is in flight, ready, in the step in progress, or has one fate, so
 * the sums always match. It is plain data and rules, without Temporal.
 */
export interface RunTally extends Pausable {
  /** The start of the run, in milliseconds. */
  readonly startedAt: number;
  readonly groupsStarted: number;
  /** The number of finished steps. */
  readonly step: number;
  readonly policyVersion: number;
  readonly updates: UpdateWatch;
  readonly skippedSteps: readonly number[];
  /** The number of groups that ended without a report since the last reconciliation. */
  missing: number;
  /** The groups in flight, by number, with the policy version at admission. */
  readonly inFlight: ReadonlyMap<number, number>;
  /** The groups to train on, by number, with their smallest policy version; the oldest group first. */
  readonly ready: ReadonlyMap<number, number>;
  /** The number of groups in the step in progress. */
  readonly inStep: number;
  /** The groups in flight that the next step waits for, so that they do not become too stale (`onStale`: `wait`). */
  readonly waitsFor: readonly number[];
  readonly groups: Count<Fate>;
  readonly rollouts: Count<Outcome>;
  readonly flagWatch: FlagWatch;
  readonly cost: RunCost;
  budget: Budget;
  /** The tasks of the set that the run leaves out; null if there are none. */
  leftOut: TasksLeftOut | null;
  readonly recentRewards: readonly number[];
  readonly recentGroups: RecentGroups;
  readonly staleWatch: StaleWatch;
  /** Forgets all that has been a reason to pause: after a resume it must not be one again. */
  forgetReasons(): void;
  /** Counts the time of the trainer since then. */
  addTrainerTime(sinceMs: number): void;
  /** Admits the next group and returns its number, which is never used again. */
  admit(): number;
  /** Notes that the run stops a group because it is too stale. */
  stops(index: number): void;
  /** Counts a group that has reported, or was reconciled. A second report of the same group changes nothing. */
  arrive(summary: GroupSummary, cancelling: boolean): void;
  /** Counts a group that was admitted and can't be started: all of its rollouts count as failed, and the run pauses. */
  neverStarted(index: number, why: string): void;
  /**
   * Takes the oldest ready groups for the next step, and drops those that are too stale for it. After a failed step the
   * same groups are returned again. Returns null when there are not enough, or the step has to wait.
   */
  takeForStep(): StepPlan | null;
  /** Notes that the step in progress has failed, and pauses the run for a reason. */
  failStep(failure: string, pausedBecause: string): void;
  /** Whether a step has failed since the last resume. */
  readonly hasFailedStep: boolean;
  /** Lets the step that has failed be skipped, and resumes the run. Returns the number of its groups. */
  skipStep(): number;
  finishStep(result: StepResult): void;
  /** Drops the ready groups, which no step will take. */
  dropReady(fate: Fate): void;
  /** Drops the groups of the step in progress, which will not be repeated. */
  dropStep(fate: Fate): void;
  state(): RunState;
}
