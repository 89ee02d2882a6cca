import assert from 'node:assert/strict';
import { it } from 'node:test';
import { summariseSweep } from '../../workflows/algorithms/summarise-sweep.ts';
import type { OnFlag } from '../../workflows/contracts/on-flag.ts';
import { type SweepRow, sweepInput } from '../../workflows/contracts/sweep.ts';

const tasks = ['set/0', 'set/1', 'set/2'];
const input = sweepInput.parse({ tasks: 'set', attempts: 2 });

function row(task: number, attempt: number, fields: Partial<SweepRow> = {}): SweepRow {
  return {
    task,
    attempt,
    retry: 0,
    taskId: `task-${task}`,
    workflowId: `sweep/rollout-${task}-${attempt}-0`,
    outcome: 'scored',
    reward: 1,
    stop: 'submitted',
    failure: null,
    versions: [3, 3],
    turns: 2,
    sampledTokens: 10,
    promptTokens: 100,
    seconds: 4,
    sandboxSeconds: 3,
    ...fields,
  };
}

const summarise = (rows: readonly SweepRow[], onFlag?: OnFlag) =>
  summariseSweep({
    sweep: 'sweep',
    sweepKey: 'key',
    input: { ...input, onFlag },
    run: null,
    pin: { policyVersion: 3 },
    endedEarly: null,
    tasks,
    rows,
    quarantined: [],
    lacking: [],
    startedAt: 1_000,
    endedAt: 61_000,
  });

it('leaves attempts that are not counted out of the denominator, and lists them with the reason', () => {
  const { result, leftOut, taskScores } = summarise([
    row(0, 0),
    row(0, 1, { reward: 0.5 }),
    row(1, 0, { outcome: 'infra', reward: null }),
    row(1, 1, { versions: [3, 4] }),
    row(2, 0, { outcome: 'invalid-task', reward: null, taskId: 'set/2', versions: null }),
  ]);
  assert.deepEqual([result.counted, result.meanReward, result.passAt1?.mean], [2, 0.75, 0.5]);
  assert.equal(result.passAt1?.tasks, 1);
  assert.deepEqual(
    leftOut.map(({ workflowId, why }) => [workflowId, why]),
    [
      ['sweep/rollout-1-0-0', 'infra'],
      ['sweep/rollout-1-1-0', 'other-version'],
      ['sweep/rollout-2-0-0', 'invalid-task'],
    ],
  );
  assert.deepEqual(
    taskScores.map(({ task, counted, passed, leftOut: out }) => [task, counted, passed, out]),
    [
      ['task-0', 2, 1, 0],
      ['task-1', 0, 0, 2],
      ['set/2', 0, 0, 1],
    ],
  );
  assert.equal(result.outcomes.scored, 3, 'an outcome is final, whatever sampled it');
});

it('counts a retried attempt once, by its last rollout, and its whole cost', () => {
  const lost = { outcome: 'infra', reward: null } as const;
  const { result, leftOut } = summarise([row(0, 0, { retry: 2 }), row(0, 0, lost), row(0, 0, { ...lost, retry: 1 })]);
  assert.deepEqual([result.counted, result.retried, leftOut.length], [1, 2, 0]);
  assert.deepEqual([result.cost.rollouts, result.cost.promptTokens, result.cost.wallSeconds], [3, 300, 60]);
});

it('computes pass@k over the tasks with at least k counted attempts', () => {
  const { result } = summarise([
    row(0, 0, { reward: 0 }),
    row(0, 1),
    row(1, 0, { reward: 0 }),
    row(1, 1, { outcome: 'cancelled', reward: null }),
  ]);
  assert.deepEqual(result.passAtK, [
    { k: 1, mean: 0.25, tasks: 2 },
    { k: 2, mean: 1, tasks: 1 },
  ]);
});

it('counts a reward as a pass if only rounding errors keep it below the least one', () => {
  const { result } = summarise([row(0, 0, { reward: 0.1 + 0.7 + 0.2 - 2 ** -53 }), row(0, 1, { reward: 0.999_99 })]);
  assert.equal(result.passAt1?.mean, 0.5);
});

it('has no rate instead of 0 if nothing is counted', () => {
  const { result } = summarise([row(0, 0, { outcome: 'infra', reward: null })]);
  assert.deepEqual([result.passAt1, result.reward, result.meanReward, result.passAtK], [null, null, null, []]);
});

it('counts a flagged attempt as the sweep says for its trick, with its measured reward in the table', () => {
  const rows = [
    row(0, 0),
    row(0, 1, { flags: ['program-shadow'] }),
    row(1, 0, { flags: ['exit'] }),
    row(1, 1, { reward: 0, flags: ['tests'] }),
  ];
  const { result, leftOut, flagged } = summarise(rows, { 'program-shadow': 'zero', exit: 'exclude' });
  assert.deepEqual([result.counted, result.meanReward, result.leftOut.flagged], [3, 1 / 3, 1]);
  assert.deepEqual([result.flags.zeroed, result.flags.excluded], [{ 'program-shadow': 1 }, { exit: 1 }]);
  assert.deepEqual(
    leftOut.map(({ workflowId, why, reward }) => [workflowId, why, reward]),
    [['sweep/rollout-1-0-0', 'flagged', 1]],
  );
  assert.deepEqual(
    flagged.map(({ reward }) => reward),
    [1, 1, 0],
  );
  assert.equal(summarise(rows).result.meanReward, 0.75);
});
