import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { asBatch, gather, pinnedBatch } from '../../activities/control/batch.ts';
import { normalise } from '../../workflows/algorithms/normalise.ts';
import type { Batch } from '../../workflows/contracts/batch.ts';
import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';
import { training } from '../../workflows/contracts/run.ts';
import type { Segment, Trace, TraceCounts, TraceSummary } from '../../workflows/contracts/trace.ts';
import { createFileStore, createRecords } from '../helpers/store/file-store.ts';

const noTraceCounts: TraceCounts = {
  branches: {},
  unclear: 0,
  dropped: 0,
  droppedTokens: 0,
  maskedTurns: 0,
  forks: 0,
  aborts: 0,
  echoes: {},
};
const tokens = { tokens: [1, 2, 3], mask: [0, 1, 1], logprobs: [0, -1, -1], versions: [-1, 0, 0] } as const;

it("counts a rollout of many branches once, in its group's baseline and in the weights", () => {
  const batch: Batch = {
    runKey: 'run',
    step: 1,
    rollouts: [1, 1, 1, 0].map((reward, index) => ({ rollout: `rollout-${index}`, group: 7, reward })),
    segments: [0, 0, 0, 1, 2, 3].map((rollout) => ({ rollout, segment: tokens })),
  };
  const { advantages, tokenWeights } = normalise(batch, training.parse({ advantage: 'rloo' }));
  assert.deepEqual(
    advantages.map((one) => one.toFixed(6)),
    ['0.333333', '0.333333', '0.333333', '-1.000000'],
  );
  assert.deepEqual(tokenWeights, [1 / 24, 1 / 8, 1 / 8, 1 / 8]);
});

it('leaves an aborted rollout out of the baseline, though it has a trace', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-batch-'));
  try {
    const store = createFileStore(join(directory, 'store'));
    const records = createRecords(join(directory, 'runs'));
    const trace = summaryOf(await store.putJson(traceOf(tokens)));
    const ended = [
      { outcome: 'scored', reward: 1 },
      { outcome: 'scored', reward: 0 },
      { outcome: 'infra', reward: null },
      { outcome: 'stale', reward: null },
    ] as const;
    const rollouts = ended.map((end, index) => reportOf({ ...end, rollout: `rollout-${index}`, trace }));
    await records.write('run', 'group-7', groupOf(7, rollouts));
    const settings = training.parse({ advantage: 'dr-grpo' });
    const input = { runKey: 'run', step: 1, groups: [7], dropped: [], training: settings };
    const gathered = await gather({ store, records }, input);
    assert.ok(gathered.batch !== null);
    assert.deepEqual([gathered.rollouts, gathered.meanReward, gathered.trainedGroups], [2, 0.5, [7]]);
    const batch = asBatch(await store.getJson(gathered.batch.digest));
    assert.equal(batch.segments.length, 2);
    assert.deepEqual(normalise(batch, settings).advantages, [0.5, -0.5]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('pins the batch of a step, so that one that is made again has it whatever has become of its groups', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-batch-'));
  try {
    const store = createFileStore(join(directory, 'store'));
    const records = createRecords(join(directory, 'runs'));
    const trace = summaryOf(await store.putJson(traceOf(tokens)));
    const rewarded = (rewards: readonly number[]) =>
      groupOf(
        7,
        rewards.map((reward, index) => reportOf({ outcome: 'scored', reward, rollout: `rollout-${index}`, trace })),
      );
    await records.write('run', 'group-7', rewarded([1, 0]));
    await records.write('run', 'group-8', rewarded([0, 1]));
    const input = { runKey: 'run', step: 1, groups: [7], dropped: [], training: training.parse({}) };
    const first = await pinnedBatch({ store, records }, input);
    await records.write('run', 'group-7', rewarded([0.5, 1]));
    assert.deepEqual(await pinnedBatch({ store, records }, input), first);
    assert.notDeepEqual(await gather({ store, records }, input), first);
    // Temporal's database was restored to before the end of the step, and other groups ended first since.
    assert.deepEqual(await pinnedBatch({ store, records }, { ...input, groups: [8] }), first);
    assert.deepEqual((await pinnedBatch({ store, records }, { ...input, step: 2, groups: [8] })).trainedGroups, [8]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('averages the rewards of dropped groups with those of the step, and counts groups whose rewards are equal', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-batch-'));
  try {
    const store = createFileStore(join(directory, 'store'));
    const records = createRecords(join(directory, 'runs'));
    const trace = summaryOf(await store.putJson(traceOf(tokens)));
    const groups: Readonly<Record<number, readonly (number | null)[]>> = {
      1: [1, 0],
      2: [0, 0],
      3: [1, 1],
      4: [0.3, 0.1 + 0.2],
      5: [0, null],
    };
    for (const [index, rewards] of Object.entries(groups)) {
      const rollouts = rewards.map((reward, position) =>
        reportOf({ outcome: reward === null ? 'stale' : 'scored', reward, rollout: `${index}-${position}`, trace }),
      );
      await records.write('run', `group-${index}`, groupOf(Number(index), rollouts));
    }
    const input = { runKey: 'run', step: 1, groups: [1, 2, 3, 4], dropped: [5, 6], training: training.parse({}) };
    const { meanReward, scoredReward, equalGroups, batch } = await gather({ store, records }, input);
    assert.deepEqual(equalGroups, { 'all-0': 1, 'all-1': 1, equal: 1 });
    assert.deepEqual([meanReward?.toFixed(6), scoredReward?.toFixed(6)], [(3.6 / 8).toFixed(6), (3.6 / 9).toFixed(6)]);
    const alone = await gather({ store, records }, { ...input, dropped: [] });
    assert.deepEqual([alone.scoredReward, alone.batch], [alone.meanReward, batch]);
    // Without a KL penalty, groups that are kept have a gradient only beside others.
    const keeping = async (kept: readonly number[], klCoef: number) => {
      const settings = training.parse({ zeroVariance: 'keep', klCoef });
      const found = await gather({ store, records }, { ...input, groups: kept, dropped: [], training: settings });
      return [found.batch !== null, found.trainedGroups, found.zeroVarianceGroups];
    };
    assert.deepEqual(await keeping([2, 3], 0), [false, [], [2, 3]]);
    assert.deepEqual(await keeping([2, 3], 0.1), [true, [2, 3], []]);
    assert.deepEqual(await keeping([1, 2], 0), [true, [1, 2], []]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('compares and averages rewards as the run counts those of flagged rollouts', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-batch-'));
  try {
    const store = createFileStore(join(directory, 'store'));
    const records = createRecords(join(directory, 'runs'));
    const trace = summaryOf(await store.putJson(traceOf(tokens)));
    const flagged = { outcome: 'scored', reward: 1, trace } as const;
    const rollouts = [
      reportOf({ ...flagged, rollout: 'honest' }),
      { ...reportOf({ ...flagged, rollout: 'shadow' }), flags: ['program-shadow'] as const },
      { ...reportOf({ ...flagged, rollout: 'left-out' }), flags: ['exit'] as const },
    ];
    await records.write('run', 'group-7', groupOf(7, rollouts));
    const input = { runKey: 'run', step: 1, groups: [7], dropped: [], training: training.parse({}) };
    const kept = await gather({ store, records }, input);
    assert.deepEqual([kept.rollouts, kept.meanReward, kept.zeroVarianceGroups], [0, 1, [7]]);
    const onFlag = { 'program-shadow': 'zero', exit: 'exclude' } as const;
    const gathered = await gather({ store, records }, { ...input, onFlag });
    assert.deepEqual([gathered.rollouts, gathered.meanReward, gathered.trainedGroups], [2, 0.5, [7]]);
    const batch = asBatch(await store.getJson(gathered.batch?.digest ?? assert.fail()));
    assert.deepEqual(
      batch.rollouts.map(({ rollout, reward }) => [rollout, reward]),
      [
        ['honest', 1],
        ['shadow', 0],
      ],
    );
  } finally {
    await rm(directory, { recursive: true });
  }
});

const reportOf = (
  known: Pick<RolloutReport, 'rollout' | 'outcome' | 'reward'> & { readonly trace: TraceSummary },
): RolloutReport => ({ ...known, workflowId: known.rollout, stop: 'exited', failure: null, stageSeconds: {} });

const groupOf = (index: number, rollouts: readonly RolloutReport[]): GroupReport => ({
  group: `run/group-${index}`,
  index,
  runKey: 'run',
  task: 'generated:train/1/0',
  admittedVersion: 0,
  rollouts,
});

function traceOf(sampled: Pick<Segment, 'tokens' | 'mask' | 'logprobs' | 'versions'>): Trace {
  const segment: Segment = { ...sampled, index: 0, kind: 'main', finishReason: 'stop', aborts: 0, maskedTurns: [] };
  return {
    session: 'rollout.1',
    turns: [],
    segments: [segment],
    branches: [],
    counts: noTraceCounts,
    forks: 0,
    maskedTurns: [],
    faultyCalls: {},
    transcript: [],
  };
}

const summaryOf = (trace: TraceSummary['trace']): TraceSummary => ({
  trace,
  turns: 1,
  segments: 1,
  sampledTokens: 2,
  promptTokens: 4,
  engineSeconds: 1,
  waitedSeconds: 0,
  minVersion: 0,
  maxVersion: 0,
  contextOverflow: false,
  turnLimit: false,
  engineFailures: 0,
});
