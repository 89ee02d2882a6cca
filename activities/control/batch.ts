import { z } from 'zod';
import type { Records } from '../../infra/store/records.ts';
import type { Store } from '../../infra/store/store.ts';
import { fateInStep, spreadOf } from '../../workflows/algorithms/group-report.ts';
import { meanOrNull } from '../../workflows/algorithms/mean.ts';
import { normalise, trainedTokens } from '../../workflows/algorithms/normalise.ts';
import { countedReward } from '../../workflows/algorithms/on-flag.ts';
import { traceMetrics } from '../../workflows/algorithms/trace-metrics.ts';
import type { Advantages, Batch, BatchSegment } from '../../workflows/contracts/batch.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';
import { equalRewards, zeroCount } from '../../workflows/contracts/outcome.ts';
import type { Segment, Trace, TraceCounts } from '../../workflows/contracts/trace.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities, GatherBatch, GatheredBatch } from '../interfaces/control.ts';

export interface BatchDependencies {
  readonly store: Store;
  readonly records: Records;
}

export function createBatchActivities(
  dependencies: BatchDependencies,
): Pick<ControlActivities, 'gatherBatch' | 'normalise'> {
  const { store } = dependencies;
  return {
    gatherBatch: (input) => atBoundary(() => pinnedBatch(dependencies, input)),
    normalise: ({ batch: { digest }, training }) =>
      atBoundary(async () => {
        const { zeroVarianceShare, ...normalised } = normalise(asBatch(await store.getJson(digest)), training);
        const advantages: Advantages = { batch: digest, ...normalised };
        return { advantages: await store.putJson(advantages), metrics: { zeroVarianceShare } };
      }),
  };
}

/**
 * Returns the batch of a step, which the first gathering pins: a step that is made again gets the same one, whatever has become of
 * its groups since. It may have other groups than were asked for, if Temporal's database was restored to before the step's end.
 */
export async function pinnedBatch(dependencies: BatchDependencies, input: GatherBatch): Promise<GatheredBatch> {
  const { records } = dependencies;
  const { runKey, step } = input;
  const name = `batch-${step}`;
  const pinned =
    (await records.find(runKey, name)) ?? (await records.writeOnce(runKey, name, await gather(dependencies, input)));
  return gatheredBatch.parse(pinned) as unknown as GatheredBatch;
}

/** Leaves out the groups that are not trained on, then pins the rest as one blob whose bytes depend on the groups alone. */
export async function gather({ store, records }: BatchDependencies, input: GatherBatch): Promise<GatheredBatch> {
  const rollouts: Batch['rollouts'][number][] = [];
  const segments: BatchSegment[] = [];
  const groups: Record<ReturnType<typeof fateInStep>, number[]> = { trained: [], 'zero-variance': [] };
  const equalGroups = zeroCount(equalRewards);
  const rewards: number[] = [];
  const counts: TraceCounts[] = [];
  const summaries: NonNullable<RolloutReport['trace']>[] = [];
  let minVersion: number | null = null;
  const reports = await readGroups(records, input);
  const canLearn = input.training.klCoef > 0 || reports.some(({ spread }) => spread === 'mixed');
  for (const { index, scored, spread } of reports) {
    rewards.push(...scored.map(({ reward }) => reward));
    if (spread !== 'mixed') equalGroups[spread] += 1;
    const fate = canLearn ? fateInStep(spread, input.training.zeroVariance) : 'zero-variance';
    groups[fate].push(index);
    if (fate !== 'trained') continue;
    for (const { rollout, reward, trace } of scored) {
      if (trace === null) continue;
      summaries.push(trace);
      if (trace.minVersion !== null) minVersion = Math.min(minVersion ?? trace.minVersion, trace.minVersion);
      const { segments: all, counts: counted } = (await store.getJson(trace.trace.digest)) as Trace;
      counts.push(counted);
      for (const segment of all)
        if (isTrained(segment)) segments.push({ rollout: rollouts.length, segment: slim(segment) });
      rollouts.push({ rollout, group: index, reward });
    }
  }
  const batch: Batch = { runKey: input.runKey, step: input.step, rollouts, segments };
  return {
    batch: segments.length === 0 ? null : await store.putJson(batch),
    trainedGroups: groups.trained,
    zeroVarianceGroups: groups['zero-variance'],
    rollouts: rollouts.length,
    tokens: segments.reduce((sum, { segment }) => sum + trainedTokens(segment), 0),
    meanReward: meanOrNull(rewards),
    scoredReward: meanOrNull([...rewards, ...(await rewardsOfDropped(records, input))]),
    equalGroups,
    minVersion,
    metrics: traceMetrics(counts, summaries),
  };
}

/** Reads the scored rollouts of the groups of a step, and how their rewards differ. */
async function readGroups(records: Records, { runKey, groups, onFlag }: GatherBatch) {
  const reports = groups.map(async (index) => {
    const scored = scoredOf((await records.read(runKey, `group-${index}`)) as GroupReport, onFlag);
    return { index, scored, spread: spreadOf(scored.map(({ reward }) => reward)) };
  });
  return Promise.all(reports);
}

/** Returns the rewards of groups that no step takes; none of one that was never started, and so has no report. */
async function rewardsOfDropped(
  records: Records,
  { runKey, dropped, onFlag }: Pick<GatherBatch, 'runKey' | 'dropped' | 'onFlag'>,
): Promise<readonly number[]> {
  const rewards: number[] = [];
  for (const index of dropped) {
    const report = (await records.find(runKey, `group-${index}`)) as GroupReport | null;
    if (report !== null) rewards.push(...scoredOf(report, onFlag).map(({ reward }) => reward));
  }
  return rewards;
}

const scoredOf = ({ rollouts }: GroupReport, onFlag: GatherBatch['onFlag']): readonly Scored[] =>
  rollouts.map((rollout) => ({ ...rollout, reward: countedReward(rollout, onFlag) })).filter(isScored);

type Scored = RolloutReport & { readonly reward: number };
const isScored = (report: RolloutReport): report is Scored => report.outcome === 'scored' && report.reward !== null;

const isTrained = ({ mask }: Segment): boolean => mask.includes(1);
const slim = ({ tokens, mask, logprobs, versions }: Segment) => ({ tokens, mask, logprobs, versions });

const gatheredBatch = z.looseObject({
  batch: z.looseObject({ digest: z.string() }).nullable(),
  trainedGroups: z.array(z.int()),
  zeroVarianceGroups: z.array(z.int()),
  equalGroups: z.record(z.string(), z.number()),
  metrics: z.record(z.string(), z.number()),
});

const batchShape = z.looseObject({
  runKey: z.string(),
  step: z.number(),
  rollouts: z.array(z.unknown()),
  segments: z.array(z.unknown()),
});

/** Casts a blob of temper's own, which its digest protects. The shape check only recognises a blob of another kind. */
export function asBatch(value: unknown): Batch {
  const parsed = batchShape.safeParse(value);
  if (!parsed.success)
    throw new TemperFailure('BlobMissing', 'expected a batch in the store, got a blob of another kind');
  return value as Batch;
}
