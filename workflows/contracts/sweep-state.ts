import type { Budget } from './budget.ts';
import type { Ledger } from './cost.ts';
import type { FlagCounts } from './flags.ts';
import type { Count, Outcome } from './outcome.ts';
import type { LeftOut, SweepPlan } from './sweep.ts';

/** Sums over the attempts that have ended. */
export interface SweepSums {
  readonly outcomes: Count<Outcome>;
  readonly leftOut: Count<LeftOut>;
  readonly retried: number;
  readonly counted: number;
  readonly passed: number;
  readonly rewards: number;
  readonly flags: FlagCounts;
  /** The cost of all rollouts, retried ones too. */
  readonly cost: Ledger;
}

/** Attempts by number with their retries, packed so that a value of history holds those of the largest sweep. */
export type PackedAttempts = readonly {
  readonly retry: number;
  /** The numbers in ascending order, each as its distance from the one before. Those in flight are close to each other. */
  readonly gaps: readonly number[];
}[];

/** The state that continue-as-new carries from one execution of a sweep to the next. */
export interface SweepState {
  readonly plan: SweepPlan;
  readonly startedAt: number;
  /** The number of the next attempt to start; attempt a at task t of n has the number a × n + t. */
  readonly next: number;
  /** The rollouts in flight. */
  readonly inFlight: PackedAttempts;
  /** The rollouts to start next. */
  readonly again: PackedAttempts;
  /** The number of records written so far. */
  readonly chunks: number;
  readonly sums: SweepSums;
  readonly pausedBecause: string | null;
  readonly recentOutcomes: readonly Outcome[];
  /** The budget as it is now. */
  readonly budget: Budget;
  readonly endedEarly: string | null;
}
