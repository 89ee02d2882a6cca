import { addRollout } from '../../workflows/algorithms/cost.ts';
import { countFlags } from '../../workflows/algorithms/flags.ts';
import { meanOrNull } from '../../workflows/algorithms/mean.ts';
import type { Ledger } from '../../workflows/contracts/cost.ts';
import type { Trick } from '../../workflows/contracts/flags.ts';
import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';
import { type Count, type Fate, fates, type Outcome, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { type RolloutResult, stages } from '../../workflows/contracts/rollout.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepReport } from '../../workflows/contracts/sweep.ts';
import type { Records } from '../store/records.ts';
import type { Store } from '../store/store.ts';
import type { Costs } from './cost-table.ts';
import { groupFates } from './group-fates.ts';
import { readRollout } from './read-rollout.ts';
import type {
  FailureCount,
  FlagFacts,
  GroupFacts,
  HeldOut,
  ReportData,
  RunFacts,
  StageTiming,
  StepFacts,
} from './report-data.ts';
import { fatesOf, type RunRecords, readRunRecords, type StepRecord, settledFates } from './run-records.ts';
import type { TokenName } from './token-views.ts';

export interface ReportSources {
  readonly records: Records;
  readonly store: Store;
  readonly run: RunFacts;
  /** The status of the run, or null when it cannot be queried: then the counts are made from the records. */
  readonly status: RunStatus | null;
  readonly heldOut: HeldOut | null;
  readonly sweeps: readonly SweepReport[];
  readonly wallSeconds: number | null;
  /** The sampler and the price table, for the cost. */
  readonly pricing: Pick<Costs, 'sampler' | 'prices'>;
  /** Names the tokens of the model, or null when the names are unknown. */
  readonly nameOf: TokenName | null;
  /** Returns the result of a rollout by its record, or null if that is gone. */
  findRollout(workflowId: string): Promise<RolloutResult | null>;
}

/** Collects the data of a report from the records of a run. */
export async function collectReport(sources: ReportSources): Promise<ReportData> {
  const { records, run, status } = sources;
  const found = await readRunRecords(records, run.key);
  const rollouts = found.groups.flatMap((group) => group.rollouts);
  const chosen = chooseExample(found.groups);
  const example = chosen === null ? null : await sources.findRollout(chosen.workflowId);
  return {
    run,
    steps: found.steps.map((record) => stepFacts(record, found)),
    groups: status?.groups ?? countFates(found),
    groupFates: groupFates(found.groups, settledFates(found)),
    rollouts: status?.rollouts ?? countOutcomes(found.groups),
    stages: timeStages(found.groups),
    failures: countFailures(found.groups),
    flags: flagFacts(rollouts),
    flagged: status?.flags ?? countFlags(rollouts.map(({ flags }) => flags)),
    rising: status?.rising ?? [],
    heldOut: sources.heldOut,
    sweeps: sources.sweeps.toSorted((a, b) => a.startedAt - b.startedAt),
    example: example === null ? null : await readRollout(sources.store, example, sources.nameOf),
    wallSeconds: sources.wallSeconds,
    costs: { ...(status?.cost ?? { rollouts: ledgerOf(rollouts), trainerSeconds: null }), ...sources.pricing },
  };
}

const ledgerOf = (rollouts: readonly RolloutReport[]): Ledger =>
  rollouts.reduce<Ledger>((ledger, { outcome, cost }) => addRollout(ledger, outcome, cost), {});

function stepFacts(record: StepRecord, { groups }: RunRecords): StepFacts {
  const { step, batch, meanReward, staleness, rollouts, tokens, metrics } = record.result;
  const isUpdate = batch !== null;
  const known = new Map(groups.map((group) => [group.index, group]));
  const facts = [...fatesOf(record)].map(([index, fate]) => groupFacts(index, fate, known.get(index)));
  return { step, isUpdate, meanReward, staleness, rollouts, tokens, metrics, groups: facts };
}

function groupFacts(index: number, fate: Fate, report: GroupReport | undefined): GroupFacts {
  const rewards = report?.rollouts.flatMap(({ reward }) => reward ?? []) ?? [];
  return { index, fate, task: report?.task ?? '', rewards, meanReward: meanOrNull(rewards) };
}

function countFates({ steps, groups }: RunRecords): Count<Fate> {
  const counts = zeroCount(fates);
  const settled = settledFates({ steps });
  for (const fate of settled.values()) counts[fate] += 1;
  counts['in-flight'] = groups.filter(({ index }) => !settled.has(index)).length;
  return counts;
}

function countOutcomes(groups: readonly GroupReport[]): Count<Outcome> {
  const counts = zeroCount(outcomes);
  for (const { rollouts } of groups) for (const { outcome } of rollouts) counts[outcome] += 1;
  return counts;
}

/** Counts failures by type and stage, the most frequent first. */
function countFailures(groups: readonly GroupReport[]): FailureCount[] {
  const counts = new Map<string, FailureCount>();
  for (const { failure, workflowId } of groups.flatMap(({ rollouts }) => rollouts)) {
    if (failure === null) continue;
    const key = `${failure.type} ${failure.stage}`;
    const known = counts.get(key);
    counts.set(key, {
      type: failure.type,
      stage: failure.stage ?? null,
      count: (known?.count ?? 0) + 1,
      example: known?.example ?? failure.message,
      workflowId: known?.workflowId ?? workflowId,
    });
  }
  return [...counts.values()].sort((a, b) => b.count - a.count);
}

type Flagged = Pick<RolloutReport, 'flags' | 'reward' | 'workflowId'>;

/** Groups flagged rollouts by trick, the most frequent first. A rollout counts once for each of its tricks. */
export function flagFacts(rollouts: readonly Flagged[]): FlagFacts[] {
  const byTrick = new Map<Trick, Flagged[]>();
  for (const rollout of rollouts) {
    for (const trick of rollout.flags ?? []) byTrick.set(trick, [...(byTrick.get(trick) ?? []), rollout]);
  }
  const facts = [...byTrick].map(([trick, flagged]): FlagFacts => {
    const [best] = flagged.toSorted((a, b) => (b.reward ?? -1) - (a.reward ?? -1));
    const meanReward = meanOrNull(flagged.flatMap(({ reward }) => reward ?? []));
    return { trick, count: flagged.length, meanReward, workflowId: best?.workflowId ?? '' };
  });
  return facts.sort((a, b) => b.count - a.count);
}

/** The number of last groups from which the example is chosen, so that it shows what the run has learned. */
const lateGroups = 24;

/**
 * Chooses the rollout that the report shows: a late one that was scored, with the best reward, then the most turns, then the
 * newest. Returns null when none was scored.
 */
function chooseExample(groups: readonly GroupReport[]): RolloutReport | null {
  const late = groups
    .toSorted((a, b) => b.index - a.index)
    .slice(0, lateGroups)
    .flatMap(({ rollouts }) => rollouts)
    .filter(({ outcome, trace }) => outcome === 'scored' && trace !== null);
  const turns = (report: RolloutReport): number => report.trace?.turns ?? 0;
  return late.toSorted((a, b) => (b.reward ?? 0) - (a.reward ?? 0) || turns(b) - turns(a))[0] ?? null;
}

/** The durations of each stage over all rollouts that passed through it, in the order of the stages. */
function timeStages(groups: readonly Pick<GroupReport, 'rollouts'>[]): StageTiming[] {
  const rollouts = groups.flatMap((group) => group.rollouts);
  return stages.flatMap((stage) => {
    const seconds = rollouts.flatMap(({ stageSeconds }) => stageSeconds[stage] ?? []).sort((a, b) => a - b);
    const max = seconds.at(-1);
    if (max === undefined) return [];
    return [{ stage, count: seconds.length, median: quantile(seconds, 0.5), p90: quantile(seconds, 0.9), max }];
  });
}

/** The nearest-rank quantile, which is always one of the values. */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
