import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import type { Ledger } from './cost.ts';
import type { Diff } from './diff.ts';
import type { FailureRecord } from './failures.ts';
import { integer, number, text } from './input.ts';
import type { Count, Outcome } from './outcome.ts';
import type { RolloutInput, RolloutSettings } from './rollout.ts';
import type { Snapshot } from './snapshot.ts';
import type { Task } from './task.ts';
import type { Verdict } from './verdict.ts';

export const regradeInput = z
  .strictObject({
    run: text('the workflow id of a run or a sweep')
      .optional()
      .describe(
        'The workflow id of a run or sweep, whose rollouts are graded again. One of `run`, `rollouts` and `grader` is required.',
      ),
    rollouts: z
      .array(text('the workflow id of a rollout'))
      .min(1)
      .max(50)
      .optional()
      .describe('The workflow ids of the rollouts to grade again, at most 50. Not together with `run`.'),
    grader: text('a version of the grader, as verdicts name it')
      .optional()
      .describe('Only rollouts whose verdict names this grader version; `none`: rollouts without a verdict.'),
    tasks: text('a task set, for example harbor:/tasks')
      .optional()
      .describe(
        'A task set whose current tasks, found by their ids, replace those that the rollouts had, for example after their ' +
          'tests were repaired. A rollout whose task is not in the set is left out. Default: the tasks that the rollouts had.',
      ),
    repeat: integer(1, 20, 'evaluations')
      .default(1)
      .describe('The number of evaluations of each diff. Repeated evaluations reveal flaky tests.'),
    // A regrade is one workflow, which has them all in flight; a sweep with more rollouts than that divides itself.
    concurrency: integer(1, 500, 'rollouts').default(16).describe('The largest number of rollouts graded at once.'),
    pauseAtInfraShare: number(0.1, 1)
      .default(0.9)
      .describe(
        'The regrade pauses itself when at least this share of the last 16 or more rollouts could not be graded.',
      ),
    reuseVerdicts: z
      .boolean({ error: 'expected true or false' })
      .default(false)
      .describe('Whether evaluations reuse cached verdicts and cache the new ones. Only with `repeat` 1.'),
  })
  .refine(({ run, rollouts, grader }) => run !== undefined || rollouts !== undefined || grader !== undefined, {
    error: 'expected run, rollouts or grader, to say which rollouts',
  })
  .refine(({ repeat, reuseVerdicts }) => repeat === 1 || !reuseVerdicts, {
    error: 'expected repeat 1 with reuseVerdicts: a cached verdict says nothing about how stable it is',
  })
  .refine(({ run, rollouts }) => run === undefined || rollouts === undefined, {
    error: 'expected run or rollouts, not both',
  });
export type RegradeInput = z.output<typeof regradeInput>;
export type RegradeRequest = z.input<typeof regradeInput>;

/**
 * The result of grading a rollout again.
 *
 * - `same`: the new reward equals the old one
 * - `changed`: the reward differs, or there was no old one
 * - `unstable`: repeated evaluations of the diff disagree: the task is flaky, and there is no new reward
 * - `failed`: the rollout could not be graded; `failure` says why
 * - `left-out`: the rollout was not graded again; `why` says why
 */
export const regradeStates = ['same', 'changed', 'unstable', 'failed', 'left-out'] as const;
export type RegradeState = (typeof regradeStates)[number];

/** One of the new evaluations: its result, and where its log is. */
export interface Regraded {
  readonly reward: number;
  readonly kind: Verdict['kind'];
  /** The digest of the log. */
  readonly log: string;
  /** Whether the verdict came from the cache. */
  readonly cached?: true;
}

/** A rollout of a regrade as its records hold it: small numbers and names. */
export interface RegradeRow {
  /** The workflow id of the rollout. */
  readonly rollout: string;
  /** The key of the rollout, by which its record is found. */
  readonly rolloutKey: string;
  readonly task: string;
  readonly state: RegradeState;
  /** The old reward; null when there was none. */
  readonly before: number | null;
  /** The new reward; null unless `same` or `changed`. */
  readonly after: number | null;
  /** The kind of the old verdict; null when there was none. */
  readonly kindBefore: Verdict['kind'] | null;
  readonly graderBefore: string | null;
  /** Digests of the task's files as the rollout had them and as they are now. Omitted when the task was not replaced. */
  readonly bundles?: { readonly before: string; readonly after: string };
  readonly evaluations: readonly Regraded[];
  readonly why: string | null;
  readonly failure: FailureRecord | null;
  /** Evidence for quarantining the task; set when evaluations disagree. */
  readonly flaky?: FlakyTask;
}

/** The known addresses of a flaky task, and the digest of the diff on which its evaluations disagree. */
export interface FlakyTask {
  readonly addresses: readonly string[];
  readonly diff: string;
}

/** A rollout that has ended, with the inputs of its evaluation. */
export type FinishedRollout = Pick<
  RegradeRow,
  'rollout' | 'rolloutKey' | 'task' | 'before' | 'kindBefore' | 'graderBefore' | 'bundles'
> &
  ({ readonly leftOut: string } | { readonly leftOut: null; readonly evaluation: FinishedEvaluation });

/** The inputs of a rollout's evaluation. */
export interface FinishedEvaluation extends Pick<RolloutSettings, 'sandbox'> {
  readonly task: Task;
  readonly diff: Diff;
  readonly answer?: BlobRef;
  /** All that the agent changed in its sandbox, if its tests got that. */
  readonly snapshot?: Snapshot;
  /** The steps of a task that has several, each of which is graded. */
  readonly steps?: FinishedSteps;
  /** The addresses of the task: as it was requested, if known, and as it is packed. */
  readonly addresses: readonly string[];
  readonly evaluationTimeoutSec: number | null;
  readonly rewardPolicy: string;
}

/** The work at the steps of a task, as its tests got it. */
export interface FinishedSteps {
  readonly worked: readonly FinishedStep[];
  /** Whether the steps after these could not begin because of them, so that they count as 0 whatever the tests say now. */
  readonly restPrevented: boolean;
  /** The purpose of the rollout, by which steps that do not begin count or not. */
  readonly purpose: RolloutInput['purpose'];
}

export interface FinishedStep {
  readonly diff: Diff;
  readonly snapshot?: Snapshot;
}

/** The result of a regrade as history holds it. The rows are in the blob `report`. */
export interface RegradeResult {
  /** The number of rollouts that were requested. */
  readonly rollouts: number;
  /** The number of finished rollouts by state. */
  readonly states: Count<RegradeState>;
  /** The mean old reward of the rollouts that have both an old and a new one; null when there are none. */
  readonly meanBefore: number | null;
  /** The mean new reward of the same rollouts. */
  readonly meanAfter: number | null;
  /** The reason why some rollouts were not graded; null when all were. */
  readonly endedEarly: string | null;
  /** The time of the evaluations, by what they made of their rollouts. */
  readonly cost: Ledger;
  /** A `RegradeReport`. */
  readonly report: BlobRef;
}

/** The full report of a regrade that has ended. */
export interface RegradeReport {
  readonly regrade: string;
  readonly regradeKey: string;
  readonly input: RegradeInput;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly result: Omit<RegradeResult, 'report'>;
  readonly rows: readonly RegradeRow[];
}

/** The state of a regrade: the answer of the query `status`. */
export interface RegradeStatus extends Omit<RegradeResult, 'report'> {
  readonly regrade: string;
  readonly regradeKey: string;
  readonly phase: 'preparing' | 'running' | 'paused' | 'cancelling' | 'cancelled' | 'done';
  readonly pausedBecause: string | null;
  readonly ended: number;
  readonly inFlight: number;
}

/** Sums over the rollouts that are done. */
export interface RegradeSums {
  readonly states: Count<RegradeState>;
  /** The number of rollouts with an old and a new reward; `before` and `after` are the sums of these rewards. */
  readonly compared: number;
  readonly before: number;
  readonly after: number;
  readonly cost: Ledger;
}

/** The state that continue-as-new carries from one execution of a regrade to the next, when nothing is in flight. */
export interface RegradeCarried {
  readonly rollouts: number;
  readonly startedAt: number;
  /** The number of the next rollout in the list. */
  readonly next: number;
  /** The numbers of earlier rollouts that are still to be graded. */
  readonly again: readonly number[];
  /** The number of records written so far. */
  readonly chunks: number;
  readonly sums: RegradeSums;
  readonly pausedBecause: string | null;
  readonly recentOutcomes: readonly Outcome[];
}
