import { countFlags } from '../../workflows/algorithms/flags.ts';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { type Count, type Fate, fates, type Outcome, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepReport } from '../../workflows/contracts/sweep.ts';
import type { Records } from '../store/records.ts';
import type { Store } from '../store/store.ts';
import { chooseRollout } from './choose-rollout.ts';
import { flagFacts } from './count-flags.ts';
import type { FailureCount, GroupFacts, HeldOut, ReportData, RunFacts, StepFacts } from './data.ts';
import { readStory } from './read-story.ts';
import { type RunRecords, readRunRecords, type StepRecord } from './run-records.ts';
import { timeStages } from './stage-times.ts';
import type { TokenName } from './token-view.ts';

export interface CollectReport {
  readonly records: Records;
  readonly store: Store;
  readonly run: RunFacts;
  /** The run's own books, where it can be asked; else they are made from the records. */
  readonly status: RunStatus | null;
  readonly heldOut: HeldOut | null;
  readonly sweeps: readonly SweepReport[];
  readonly wallSeconds: number | null;
  /** Null where the names of the tokens are not known. */
  readonly nameOf: TokenName | null;
  /** A rollout's result, or null when the server no longer has it. */
  findRollout(workflowId: string): Promise<RolloutResult | null>;
}

/** Gathers what a report shows from the records of a run. */
export async function collectReport(options: CollectReport): Promise<ReportData> {
  const { records, run, status } = options;
  const found = await readRunRecords(records, run.key);
  const rollouts = found.groups.flatMap((group) => group.rollouts);
  const chosen = chooseRollout(found.groups);
  const result = chosen === null ? null : await options.findRollout(chosen.workflowId);
  return {
    run,
    steps: found.steps.map((record) => stepFacts(record, found)),
    groups: status?.groups ?? countFates(found),
    rollouts: status?.rollouts ?? countOutcomes(found.groups),
    stages: timeStages(found.groups),
    failures: countFailures(found.groups),
    flags: flagFacts(rollouts),
    flagged: countFlags(rollouts.map(({ flags }) => flags)),
    heldOut: options.heldOut,
    sweeps: options.sweeps.toSorted((a, b) => a.startedAt - b.startedAt),
    story: result === null ? null : await readStory(options.store, result, options.nameOf),
    wallSeconds: options.wallSeconds,
  };
}

function stepFacts(record: StepRecord, { groups }: RunRecords): StepFacts {
  const { step, meanReward, staleness, rollouts, tokens, metrics } = record.result;
  const known = new Map(groups.map((group) => [group.index, group]));
  const facts = [...fatesOf(record)].map(([index, fate]) => groupFacts(index, fate, known.get(index)));
  return { step, meanReward, staleness, rollouts, tokens, metrics, groups: facts };
}

/** The fate of every group that came up between the last step and this one. */
function fatesOf({ trained, zeroVariance, dropped }: StepRecord): Map<number, Fate> {
  return new Map<number, Fate>([
    ...trained.map((index) => [index, 'trained'] as const),
    ...zeroVariance.map((index) => [index, 'zero-variance'] as const),
    ...dropped,
  ]);
}

function groupFacts(index: number, fate: Fate, report: GroupReport | undefined): GroupFacts {
  const rewards = report?.rollouts.flatMap(({ reward }) => reward ?? []) ?? [];
  const meanReward = rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return { index, fate, task: report?.task ?? '', rewards, meanReward };
}

function countFates({ steps, groups }: RunRecords): Count<Fate> {
  const counts = zeroCount(fates);
  const settled = new Map(steps.flatMap((record) => [...fatesOf(record)]));
  for (const fate of settled.values()) counts[fate] += 1;
  counts['in-flight'] = groups.filter(({ index }) => !settled.has(index)).length;
  return counts;
}

function countOutcomes(groups: readonly GroupReport[]): Count<Outcome> {
  const counts = zeroCount(outcomes);
  for (const { rollouts } of groups) for (const { outcome } of rollouts) counts[outcome] += 1;
  return counts;
}

/** By type and stage, most frequent first. */
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
