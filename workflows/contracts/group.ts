import { z } from 'zod';
import type { Ledger, RolloutCost } from './cost.ts';
import type { FailureRecord } from './failures.ts';
import type { FlagCounts, Trick } from './flags.ts';
import { integer, text } from './input.ts';
import { onFlag } from './on-flag.ts';
import type { Count, Outcome, Spread, StopReason } from './outcome.ts';
import { membership, rolloutSettings, type Stage, seed } from './rollout.ts';
import type { TraceSummary } from './trace.ts';

export const groupInput = z.strictObject({
  task: text('a task address, for example generated:train/1/0').describe('The address of the task.'),
  rolloutsPerGroup: integer(1, 32, 'rollouts').default(8).describe('The number of rollouts of the task.'),
  settings: rolloutSettings
    .prefault({})
    .describe('How each rollout is done: the fields of a rollout from `agent` to `unscored`.'),
  onFlag: onFlag.optional(),
  seed: seed.describe(
    'The seed of the sampling; each rollout has its own from it. Set by runs. Default: each rollout has one that no other has.',
  ),
  member: membership.optional().describe('The run that the group belongs to. Set by runs, not by hand. Default: none.'),
});
export type GroupInput = z.output<typeof groupInput>;
export type GroupRequest = z.input<typeof groupInput>;

type ReportedTrace = Omit<TraceSummary, 'counts' | 'engineSeconds' | 'waitedSeconds'>;

/** One rollout as its group reports it: references and small numbers only. */
export interface RolloutReport {
  readonly rollout: string;
  readonly workflowId: string;
  readonly outcome: Outcome;
  readonly reward: number | null;
  readonly stop: StopReason | null;
  readonly failure: FailureRecord | null;
  /** The trace, without its counts, and without the seconds that its cost has. */
  readonly trace: ReportedTrace | null;
  readonly stageSeconds: Readonly<Partial<Record<Stage, number>>>;
  /** Absent if it is unknown, where a rollout has no result. */
  readonly cost?: RolloutCost;
  /** The suspected tricks. Omitted when there are none. */
  readonly flags?: readonly Trick[];
}

/** Everything about a group that has ended; kept as a record (`group-<index>`), not in history. */
export interface GroupReport {
  readonly group: string;
  readonly index: number;
  readonly runKey: string | null;
  readonly task: string;
  readonly admittedVersion: number;
  readonly rollouts: readonly RolloutReport[];
}

/** The result of a group, with which it also reports to its run. */
export interface GroupSummary {
  /** The key of the run, or of a group by hand. */
  readonly runKey: string;
  readonly index: number;
  /** Smallest policy version over the sampled tokens; the version at admission when no token was sampled. */
  readonly minVersion: number;
  readonly outcomes: Count<Outcome>;
  /** The mean over the scored rollouts that are not left out, as they count; null when there are none. */
  readonly meanReward: number | null;
  /** The number of these rollouts. */
  readonly rewards: number;
  readonly spread: Spread;
  /** The time of the slowest rollout, without the wait for a slot. */
  readonly seconds: number;
  /** Suspected tricks in the group's rollouts. Omitted when there are none. */
  readonly flags?: FlagCounts;
  readonly cost: Ledger;
}
