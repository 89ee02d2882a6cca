import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import { type Budget, type BudgetUse, budget } from './budget.ts';
import type { Ledger, RolloutCost } from './cost.ts';
import type { FailureRecord } from './failures.ts';
import type { FlagCounts, Trick } from './flags.ts';
import { integer, number, oneOf, text, versionNumber } from './input.ts';
import { onFlag } from './on-flag.ts';
import type { Count, Outcome, StopReason } from './outcome.ts';
import type { PolicyRef } from './policy.ts';
import { leaveOut, rolloutSettings } from './rollout.ts';
import { weight } from './share.ts';
import { type Upstream, upstreamName } from './upstream.ts';

export const sweepInput = z
  .strictObject({
    tasks: text('a task set, for example generated:test/1').describe('The address of the task set.'),
    count: integer(1, 100_000, 'tasks')
      .default(32)
      .describe('The number of tasks of the set to evaluate. A smaller set is evaluated as a whole.'),
    pick: oneOf(['first', 'sample'])
      .default('first')
      .describe('Which tasks: the `first` ones, or a random `sample` of a finite set, decided by `seed`.'),
    seed: integer(0, 2 ** 31 - 1)
      .default(1)
      .describe('The seed of the sampling, and of the tasks that `pick: sample` draws.'),
    attempts: integer(1, 1000, 'attempts').default(1).describe('The number of attempts at each task.'),
    concurrency: integer(1, 1_500, 'rollouts')
      .default(16)
      .describe('The largest number of rollouts in flight at once. Those without a slot wait on the server.'),
    weight: weight.describe('The weight of the sweep among the sweeps that want slots.'),
    budget: budget
      .optional()
      .describe(
        'Limits of what the sweep may use. When one is reached, the sweep starts no rollout and pauses with the reason; the ' +
          'update `setBudget` raises it. Default: none.',
      ),
    onFlag: onFlag.optional(),
    settings: rolloutSettings
      .prefault({})
      .describe(
        'How each rollout is done: the fields of a rollout from `agent` to `unscored`. An end of the agent that `unscored` ' +
          'names counts as a failure.',
      ),
    policy: text('the workflow id of a run')
      .optional()
      .describe('The workflow id of the run whose policy is evaluated. Default: the run that is open or ended last.'),
    policyVersion: versionNumber
      .optional()
      .describe(
        'The policy version to evaluate, even while training publishes newer ones. Refused with `VersionNotServed` if the ' +
          'engines do not serve it. Default: the version in service when the sweep starts.',
      ),
    upstream: upstreamName
      .optional()
      .describe(
        'The name of an upstream model to evaluate instead of the policy. Refused with `UnknownUpstream` if it is not ' +
          'configured. Default: none.',
      ),
    passAt: number(0.001, 1)
      .default(1)
      .describe('The minimum reward that counts as a pass, up to a rounding error of 1e-9.'),
    infraRetries: integer(0, 20, 'retries')
      .default(2)
      .describe('The number of retries of an attempt that ended as `infra`, each as a new rollout.'),
    pauseAtInfraShare: number(0.1, 1)
      .default(0.9)
      .describe('The sweep pauses itself when at least this share of its last 16 or more rollouts ended as `infra`.'),
    leaveOut: leaveOut.describe(
      'Set to `true` to leave out the tasks that need more network than `TEMPER_NETWORK` allows; the report lists them. ' +
        'Default: the sweep is refused if it has such tasks.',
    ),
    reuseVerdicts: z
      .boolean({ error: 'expected true or false' })
      .default(false)
      .describe('Whether evaluations reuse cached verdicts and cache the new ones.'),
  })
  .refine(
    ({ policy, policyVersion, upstream }) =>
      upstream === undefined || (policyVersion === undefined && policy === undefined),
    { path: ['upstream'], error: 'expected it without policyVersion and policy: a sweep evaluates one of the two' },
  );
export type SweepInput = z.output<typeof sweepInput>;
export type SweepRequest = z.input<typeof sweepInput>;

/**
 * The reason why an attempt is not counted: its outcome, that another version or model than the pinned one sampled it, or a flag
 * (`onFlag`).
 */
export const leftOutKinds = ['infra', 'stale', 'invalid-task', 'cancelled', 'other-version', 'flagged'] as const;
export type LeftOut = (typeof leftOutKinds)[number];

/** One rollout of a sweep as its records hold it: small numbers and names. */
export interface SweepRow {
  /** The number of the task within the sweep, from 0. */
  readonly task: number;
  /** The number of the attempt at the task, from 0. */
  readonly attempt: number;
  /** The number of earlier rollouts of this attempt that ended as `infra`. */
  readonly retry: number;
  /** The task's own id; its address if the task could not be looked up. */
  readonly taskId: string;
  readonly workflowId: string;
  readonly outcome: Outcome;
  readonly reward: number | null;
  readonly stop: StopReason | null;
  readonly failure: FailureRecord | null;
  /** Smallest and largest policy version over the sampled tokens; null when none was sampled. */
  readonly versions: readonly [number, number] | null;
  /** The model's name at its server, if an upstream model sampled instead of the policy. */
  readonly model?: string;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly promptTokens: number;
  /** The duration of all stages. */
  readonly seconds: number;
  /** The time in sandboxes: the agent's, and those of the evaluations. 0 if the cost is unknown. */
  readonly sandboxSeconds: number;
  /** Absent if it is unknown, where a rollout has no result. */
  readonly cost?: RolloutCost;
  /** The suspected tricks. Omitted when there are none. */
  readonly flags?: readonly Trick[];
}

/** A mean in [0, 1] with its 95 % interval; see algorithms/clustered-mean.ts. */
export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** The number of independent attempts, each passed or not, that the tasks are worth: at least `tasks`. */
  readonly effective: number;
  readonly tasks: number;
}

/** The probability that at least one of k attempts passes. Each k of a sweep is over the same tasks. */
export interface PassAtK extends Estimate {
  readonly k: number;
}

/** The cost of a sweep, including rollouts that are not counted and retries. */
export interface SweepCost {
  readonly rollouts: number;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly promptTokens: number;
  /** The seconds from the sweep's start to its end. */
  readonly wallSeconds: number;
  /** The sum over all rollouts. */
  readonly rolloutSeconds: number;
  readonly sandboxSeconds: number;
  /** The cost of the rollouts, by outcome. */
  readonly ledger: Ledger;
}

/** The reason why a chosen task is not attempted: its tests are flaky, or it needs a network that it does not get. */
export const taskLeftOutKinds = ['quarantined', 'network'] as const;
export type TaskLeftOutKind = (typeof taskLeftOutKinds)[number];

/** A task that was chosen and is not attempted. */
export interface TaskLeftOut {
  readonly address: string;
  readonly why: string;
}

/** The result of a sweep as history holds it. The tables are in the blob `report`. */
export interface SweepResult {
  readonly tasks: number;
  /** The outcome of each attempt's last rollout. */
  readonly outcomes: Count<Outcome>;
  /** The mean over the counted attempts; null when there are none. */
  readonly meanReward: number | null;
  readonly attempts: number;
  readonly counted: number;
  /** The counted attempts whose agent ended in a way that `unscored` names, each with a reward of 0. */
  readonly unscored: number;
  readonly leftOut: Count<LeftOut>;
  /** The number of rollouts that ended as `infra` and were retried. */
  readonly retried: number;
  /** The policy version that was evaluated; null when the agent calls no model. */
  readonly policyVersion: number | null;
  /** The upstream model that was evaluated instead of the policy. */
  readonly upstream?: Upstream;
  /** The reason why some attempts were not made; null when all were. */
  readonly endedEarly: string | null;
  readonly passAt1: Estimate | null;
  /** The mean reward, weighted by task, with its interval. */
  readonly reward: Estimate | null;
  readonly passAtK: readonly PassAtK[];
  readonly cost: SweepCost;
  /** Suspected tricks in each attempt's last rollout. */
  readonly flags: FlagCounts;
  /** The chosen tasks that were not attempted, by the reason. */
  readonly tasksLeftOut: Count<TaskLeftOutKind>;
  /** A SweepReport. */
  readonly report: BlobRef;
}

/** One task of a sweep. */
export interface TaskScore {
  readonly task: string;
  readonly address: string;
  readonly counted: number;
  readonly passed: number;
  /** The rewards of the counted attempts, as they count. */
  readonly rewards: readonly number[];
  readonly meanReward: number | null;
  readonly leftOut: number;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly seconds: number;
}

/** A flagged rollout for people to look at. Its reward is the measured one. */
export type FlaggedRollout = Pick<SweepRow, 'taskId' | 'workflowId' | 'reward'> & Required<Pick<SweepRow, 'flags'>>;

/** The full report of a sweep that has ended. */
export interface SweepReport {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly input: SweepInput;
  /** The workflow id of the run whose policy was in service at the start; null when there is none. */
  readonly run: string | null;
  /** The pool of that run's policy. Absent where no run is known. */
  readonly pool?: string;
  readonly startedAt: number;
  readonly result: Omit<SweepResult, 'report'>;
  readonly taskScores: readonly TaskScore[];
  /** The attempts that are not counted. */
  readonly leftOut: readonly (SweepRow & { readonly why: LeftOut })[];
  /** The flagged rollouts. */
  readonly flagged: readonly FlaggedRollout[];
  /** Addresses of chosen tasks that are quarantined and were not attempted. */
  readonly quarantined: readonly string[];
  /** The chosen tasks that need a network which they do not get, and were not attempted. */
  readonly lacking: readonly TaskLeftOut[];
}

/** The state of a sweep: the answer of the query `status`. */
export interface SweepStatus {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly phase: 'preparing' | 'running' | 'paused' | 'cancelling' | 'cancelled' | 'done';
  readonly pausedBecause: string | null;
  readonly policyVersion: number | null;
  /** The pool of the evaluated policy, where its run is known. */
  readonly pool?: string;
  readonly upstream?: Upstream;
  readonly tasks: number;
  /** The number of attempts in all. */
  readonly planned: number;
  /** The number of attempts that have ended and are not retried. */
  readonly ended: number;
  readonly inFlight: number;
  readonly outcomes: Count<Outcome>;
  readonly leftOut: Count<LeftOut>;
  readonly retried: number;
  readonly counted: number;
  readonly passed: number;
  readonly meanReward: number | null;
  readonly flags: FlagCounts;
  readonly endedEarly: string | null;
  /** The cost of the rollouts that have ended, retried ones too. */
  readonly cost: Ledger;
  readonly budget: { readonly limits: Budget; readonly used: BudgetUse };
}

/** The tasks of a sweep and the model it evaluates, decided once. */
export interface SweepPlan {
  readonly tasks: number;
  /** A JSON list of the tasks' addresses. */
  readonly list: BlobRef;
  /** The policy version to evaluate; null when it is not known yet, or the agent calls no model. */
  readonly policyVersion: number | null;
  /** The upstream model to evaluate instead of the policy. */
  readonly upstream?: Upstream;
  readonly run: string | null;
  /** The policy of that run. Absent where no run is known. */
  readonly policy?: PolicyRef;
  /** A JSON list of the quarantined addresses, which are skipped. Omitted when there are none. */
  readonly quarantined?: BlobRef;
  /** A JSON list of the tasks that lack a network, each with the reason. Omitted when there are none. */
  readonly lacking?: BlobRef;
}
