/** What a sweep may ask of the control worker; a part of `ControlActivities`. */
import type { SweepInput, SweepPlan, SweepResult, SweepRow } from '../workflows/contracts/sweep.ts';

export interface SweepActivities {
  /** Decides once what a sweep evaluates. Refuses one that could never work: unknown agent, task set, policy version. */
  planSweep(input: { readonly input: SweepInput }): Promise<SweepPlan>;
  /** A page of the list of a sweep's tasks. */
  readAddresses(input: {
    readonly list: string;
    readonly from: number;
    readonly count: number;
  }): Promise<{ readonly addresses: readonly string[] }>;
  /** Those of the rollouts that have ended, as many as history may hold; `more`: ask again at once. */
  endedRollouts(input: EndedRollouts): Promise<{ readonly rows: readonly SweepRow[]; readonly more: boolean }>;
  recordSweepRows(input: {
    readonly sweepKey: string;
    readonly chunk: number;
    readonly rows: readonly SweepRow[];
  }): Promise<void>;
  /** Reads what was recorded and puts the report into the store. */
  summariseSweep(input: SummariseSweep): Promise<SweepResult>;
}

export interface EndedRollouts {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly tasks: number;
  /** Digest of the list of their addresses. */
  readonly list: string;
  /** [number of the attempt, retry] */
  readonly rollouts: readonly (readonly [number, number])[];
}

export interface SummariseSweep {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly input: SweepInput;
  readonly plan: SweepPlan;
  readonly chunks: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly endedEarly: string | null;
}
