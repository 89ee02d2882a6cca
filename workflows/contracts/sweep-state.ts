import type { Budget } from './budget.ts';
import type { Ledger } from './cost.ts';
import type { FlagCounts } from './flags.ts';
import type { Count, Outcome } from './outcome.ts';
import type { LeftOut, SweepInput, SweepPlan } from './sweep.ts';

/** A window of a sweep: every `windows`-th attempt, from the number `window` on. */
export interface SweepWindow {
  /** The number of the window, from 0. */
  readonly window: number;
  readonly windows: number;
}

/** The request of a sweep to one of its windows. */
export interface SweepWindowRequest extends SweepWindow {
  readonly sweep: string;
  readonly sweepKey: string;
  /** The sweep's input, with the window's share of the concurrency and of the rollouts in the budget. */
  readonly input: SweepInput;
  readonly plan: SweepPlan;
  /** Set if the sweep is paused when the window starts. */
  readonly pausedBecause: string | null;
  /** The number of times that the sweep had been resumed when the window started. */
  readonly resumes: number;
  /** The number of changes of the sweep when the window started. */
  readonly control: number;
}

/** The state of a sweep, as it tells its windows. Signals may arrive in any order, so the one with the highest number counts. */
export interface SweepWindowControl {
  /** The number of changes of the sweep so far. */
  readonly number: number;
  readonly pausedBecause: string | null;
  /** The number of times that the sweep was resumed. */
  readonly resumes: number;
  /** The window's part of the budget. */
  readonly budget: Budget;
}

/** The progress of a window, as it reports it to its sweep. Each report replaces the earlier ones; they may arrive in any order. */
export interface SweepWindowReport {
  /** The key of the sweep, since another one may have its name by now. */
  readonly sweepKey: string;
  readonly window: number;
  readonly chunks: number;
  readonly sums: SweepSums;
  readonly inFlight: number;
  readonly policyVersion: number | null;
  readonly pausedBecause: string | null;
  /** The number of the sweep's resumes that the window knows of: a pause from before a later one is over. */
  readonly resumes: number;
  readonly endedEarly: string | null;
}

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

/** The state that continue-as-new carries from one execution of a sweep to the next. */
export interface SweepState {
  readonly plan: SweepPlan;
  readonly startedAt: number;
  /** The number of the next attempt to start; attempt a at task t of n has the number a × n + t. */
  readonly next: number;
  /** Pairs of attempt number and retry, of the rollouts in flight. */
  readonly inFlight: readonly (readonly [number, number])[];
  /** Pairs of attempt number and retry, of the rollouts to start next. */
  readonly again: readonly (readonly [number, number])[];
  /** The number of records written so far. */
  readonly chunks: number;
  readonly sums: SweepSums;
  readonly pausedBecause: string | null;
  readonly recentOutcomes: readonly Outcome[];
  /** The number of resumes that a window knows of. */
  readonly resumes?: number;
  /** The number of the last control that a window got. */
  readonly control?: number;
  /** The budget as it is now, or a window's part of it. */
  readonly budget: Budget;
  readonly endedEarly: string | null;
}
