import type { Budget } from './budget.ts';
import type { RunCost } from './cost.ts';
import type { FlagCounts, FlaggedShare } from './flags.ts';
import type { Count, EqualRewards, Fate, Outcome } from './outcome.ts';
import type { TasksLeftOut } from './run.ts';

/** The groups of a step. A retried step uses the same ones, because its update may already have been made. */
export interface StepPlan {
  readonly groups: readonly number[];
  /** The smallest policy version of each of these groups. */
  readonly minVersions: readonly number[];
  /** Groups that ended without being trained since the last step, with their fates; for this step's record. */
  readonly dropped: readonly (readonly [number, Fate])[];
  /** The last failure of the step; null if it has not failed. */
  readonly failure: string | null;
  readonly isSkipped: boolean;
}

/** A group that has ended. `settled` is 0 until it has its fate, and `fate` is the one that it would have in a step then. */
export type RecentGroup = readonly [
  index: number,
  seconds: number,
  fate: Fate,
  settled: 0 | 1,
  meanReward: number | null,
  rewards: number,
];

/** The last steps in a row that made no update, and their groups, among them those whose rewards are all equal. */
export interface EmptySteps {
  readonly steps: number;
  readonly groups: number;
  readonly equalGroups: Count<EqualRewards>;
}

/** The updates of a run, and the steps that made none. */
export interface RunUpdates {
  /** The number of steps that made an update. */
  readonly made: number;
  /** The last one that did; 0 if none did. */
  readonly last: number;
  readonly empty: EmptySteps;
}

/** Groups that were too stale to train on since the last step or resume. */
export interface StaleGroups {
  readonly count: number;
  /** The smallest policy version that sampled the last of these groups; 0 if the count is 0. */
  readonly lastVersion: number;
}

/** The state that continue-as-new carries from one execution of a run to the next. */
export interface RunState {
  /** The start of the run, in milliseconds. */
  readonly startedAt: number;
  readonly groupsStarted: number;
  readonly step: number;
  readonly policyVersion: number;
  readonly updates: RunUpdates;
  readonly skippedSteps: readonly number[];
  /** Pairs of group number and policy version at admission. */
  readonly inFlight: readonly (readonly [number, number])[];
  /** Pairs of group number and smallest policy version. */
  readonly ready: readonly (readonly [number, number])[];
  readonly groups: Count<Fate>;
  readonly rollouts: Count<Outcome>;
  readonly flags: FlagCounts;
  /** The flags of the last groups, newest last. */
  readonly recentFlags: readonly FlaggedShare[];
  readonly pausedBecause: string | null;
  /** The outcomes of the last rollouts, newest last. */
  readonly recentOutcomes: readonly Outcome[];
  readonly recentRewards: readonly number[];
  /** The last groups that have ended, newest last. */
  readonly recentGroups: readonly RecentGroup[];
  /** The step that has begun and is not finished; null when there is none. */
  readonly plan: StepPlan | null;
  /** Groups that ended without being trained, for the record of the next step. */
  readonly dropped: readonly (readonly [number, Fate])[];
  readonly cost: RunCost;
  readonly staleGroups: StaleGroups;
  /** The groups in flight that the run has stopped, by number. */
  readonly stopped: readonly number[];
  /** The groups that a pinned step took before they have reported, with their fates. */
  readonly takenEarly: readonly (readonly [number, Fate])[];
  /** Null if no task is left out. */
  readonly leftOut: TasksLeftOut | null;
  /** The budget as it is now. */
  readonly budget: Budget;
}
