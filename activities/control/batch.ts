import { z } from 'zod';
import type { Records } from '../../infra/store/records.ts';
import type { Store } from '../../infra/store/store.ts';
import { advantageRules } from '../../workflows/algorithms/advantages.ts';
import { tokenWeight } from '../../workflows/algorithms/spread.ts';
import { traceMetrics } from '../../workflows/algorithms/trace-metrics.ts';
import type { Advantages, Batch, BatchSegment } from '../../workflows/contracts/batch.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';
import type { Training } from '../../workflows/contracts/run.ts';
import type { Segment, Trace, TraceCounts, TraceSummary } from '../../workflows/contracts/trace.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities, GatherBatch, GatheredBatch } from '../interfaces.ts';

export interface BatchDependencies {
  readonly store: Store;
  readonly records: Records;
}

export function createBatchActivities(
  dependencies: BatchDependencies,
): Pick<ControlActivities, 'gatherBatch' | 'normalise'> {
  const { store } = dependencies;
  return {
    gatherBatch: (input) => atBoundary(() => gather(dependencies, input)),
    normalise: ({ batch, training }) =>
      atBoundary(async () => {
        const { advantages, metrics } = normalise(asBatch(await store.getJson(batch.digest)), batch.digest, training);
        return { advantages: await store.putJson(advantages), metrics };
      }),
  };
}

/** Drops what can't be compared, then pins the rest: one blob, whose bytes depend on the groups alone. */
export async function gather({ store, records }: BatchDependencies, input: GatherBatch): Promise<GatheredBatch> {
  const rollouts: Batch['rollouts'][number][] = [];
  const segments: BatchSegment[] = [];
  const trained: number[] = [];
  const zeroVariance: number[] = [];
  const rewards: number[] = [];
  const counts: TraceCounts[] = [];
  const summaries: TraceSummary[] = [];
  let minVersion: number | null = null;
  for (const index of input.groups) {
    const report = (await records.read(input.runKey, `group-${index}`)) as GroupReport;
    const scored = report.rollouts.filter(isScored);
    rewards.push(...scored.map(({ reward }) => reward));
    const first = scored[0]?.reward;
    const equal = scored.every(({ reward }) => reward === first);
    if (equal) zeroVariance.push(index);
    if (equal && input.training.zeroVariance === 'drop') continue;
    if (!equal) trained.push(index);
    for (const { rollout, reward, trace } of scored) {
      if (trace === null) continue;
      summaries.push(trace);
      if (trace.minVersion !== null) minVersion = Math.min(minVersion ?? trace.minVersion, trace.minVersion);
      const { segments: all, counts: counted } = (await store.getJson(trace.trace.digest)) as Trace;
      if (counted !== undefined) counts.push(counted);
      for (const segment of all)
        if (isTrained(segment)) segments.push({ rollout: rollouts.length, segment: slim(segment) });
      rollouts.push({ rollout, group: index, reward });
    }
  }
  const batch: Batch = { runKey: input.runKey, step: input.step, rollouts, segments };
  const kept = input.training.zeroVariance === 'keep';
  return {
    batch: segments.length === 0 ? null : await store.putJson(batch),
    // Kept groups of equal rewards carry the KL penalty: they are trained on.
    trainedGroups: kept ? [...trained, ...zeroVariance] : trained,
    zeroVarianceGroups: kept ? [] : zeroVariance,
    rollouts: rollouts.length,
    tokens: segments.reduce((sum, { segment }) => sum + trainedTokens(segment), 0),
    meanReward: rewards.length === 0 ? null : meanOf(rewards),
    minVersion,
    metrics: traceMetrics(counts, summaries),
  };
}

export function normalise(
  batch: Batch,
  digest: string,
  training: Training,
): { readonly advantages: Advantages; readonly metrics: Readonly<Record<string, number>> } {
  const rule = advantageRules[training.advantage];
  const advantages: number[] = new Array(batch.rollouts.length).fill(0);
  const groups = Map.groupBy(batch.rollouts.keys(), (position) => batch.rollouts[position]?.group);
  let zeroVariance = 0;
  for (const positions of groups.values()) {
    const values = rule(positions.map((position) => batch.rollouts[position]?.reward ?? 0));
    if (values.every((value) => value === 0)) zeroVariance += 1;
    for (const [i, position] of positions.entries()) advantages[position] = values[i] ?? 0;
  }
  const rolloutTokens: number[] = new Array(batch.rollouts.length).fill(0);
  for (const { rollout, segment } of batch.segments) {
    rolloutTokens[rollout] = (rolloutTokens[rollout] ?? 0) + trainedTokens(segment);
  }
  const batchTokens = rolloutTokens.reduce((sum, count) => sum + count, 0);
  const rollouts = batch.rollouts.length;
  const tokenWeights = rolloutTokens.map((count) =>
    tokenWeight(training.aggregation, { rollouts, batchTokens, rolloutTokens: count }),
  );
  return {
    advantages: { batch: digest, advantages, tokenWeights },
    metrics: { zeroVarianceShare: groups.size === 0 ? 0 : zeroVariance / groups.size },
  };
}

type Scored = RolloutReport & { readonly reward: number };
const isScored = (report: RolloutReport): report is Scored => report.outcome === 'scored' && report.reward !== null;

const isTrained = ({ mask }: Segment): boolean => mask.includes(1);
const trainedTokens = ({ mask }: Pick<Segment, 'mask'>): number => mask.reduce<number>((sum, one) => sum + one, 0);
const slim = ({ tokens, mask, logprobs, versions }: Segment) => ({ tokens, mask, logprobs, versions });
const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const batchShape = z.looseObject({
  runKey: z.string(),
  step: z.number(),
  rollouts: z.array(z.unknown()),
  segments: z.array(z.unknown()),
});

/** Our own blob, checked by its digest; the shape check names a blob of another kind. */
export function asBatch(value: unknown): Batch {
  const parsed = batchShape.safeParse(value);
  if (!parsed.success)
    throw new TemperFailure('BlobMissing', 'expected a batch in the store, got a blob of another kind');
  return value as Batch;
}
