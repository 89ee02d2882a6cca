import type { Ledger } from '../../workflows/contracts/cost.ts';
import type { GroupDurations } from '../../workflows/contracts/ended-group.ts';
import type { FlagCounts } from '../../workflows/contracts/flags.ts';
import type { Count, Fate, Outcome } from '../../workflows/contracts/outcome.ts';
import { type MoneyFacts, moneyOf } from './cost-table.ts';
import type { ReportData, StepFacts } from './report-data.ts';

/** The content of `summary.json`: the key figures of a run. */
export interface Summary {
  readonly run: string;
  readonly runKey: string;
  readonly seed: number;
  readonly meanRewardFirstFifth: number | null;
  readonly meanRewardLastFifth: number | null;
  readonly heldOutBefore: number | null;
  readonly heldOutAfter: number | null;
  readonly steps: number;
  /** The number of steps that made an update. */
  readonly updates: number;
  readonly groups: number;
  readonly rollouts: number;
  readonly outcomes: Count<Outcome>;
  readonly fates: Count<Fate>;
  readonly durations: GroupDurations;
  readonly flags: FlagCounts;
  readonly tokensTrained: number;
  readonly maxStaleness: number;
  readonly wallSeconds: number | null;
  readonly cost: { readonly rollouts: Ledger; readonly trainerSeconds: number | null } | null;
  /** Null without a price table. */
  readonly money: MoneyFacts | null;
}

/** Computes the key figures of a run. */
export function summarise(data: ReportData): Summary {
  const { run, steps, rollouts, groups, heldOut } = data;
  const fifth = Math.max(1, Math.round(steps.length / 5));
  return {
    run: run.id,
    runKey: run.key,
    seed: run.seed,
    meanRewardFirstFifth: meanReward(steps.slice(0, fifth)),
    meanRewardLastFifth: meanReward(steps.slice(-fifth)),
    heldOutBefore: heldOut?.before ?? null,
    heldOutAfter: heldOut?.after ?? null,
    steps: steps.length,
    updates: steps.filter(({ isUpdate }) => isUpdate).length,
    groups: sum(Object.values(groups)),
    rollouts: sum(Object.values(rollouts)),
    outcomes: rollouts,
    fates: groups,
    durations: data.groupFates.durations,
    flags: data.flagged,
    tokensTrained: sum(steps.map(({ tokens }) => tokens)),
    maxStaleness: Math.max(0, ...steps.map(({ staleness }) => staleness)),
    wallSeconds: data.wallSeconds,
    cost: data.costs && { rollouts: data.costs.rollouts, trainerSeconds: data.costs.trainerSeconds ?? null },
    money: data.costs && moneyOf(data.costs),
  };
}

/** The mean of the steps' mean rewards, each with equal weight, or null when no step has one. */
function meanReward(steps: readonly StepFacts[]): number | null {
  const rewards = steps.flatMap(({ meanReward: reward }) => reward ?? []);
  return rewards.length === 0 ? null : sum(rewards) / rewards.length;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
