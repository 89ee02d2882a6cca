import assert from 'node:assert/strict';
import { it } from 'node:test';
import { summariseSweep } from '../../workflows/algorithms/summarise-sweep.ts';
import { type SweepInput, type SweepRow, sweepInput } from '../../workflows/contracts/sweep.ts';

const tasks = Array.from({ length: 10 }, (_, task) => `set/${task}`);
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

const lost = { outcome: 'infra', reward: null } as const;

/** The attempts of a sweep, task by task. */
const tasksOf = (tasks: number, attempts: number) =>
  Array.from({ length: tasks * attempts }, (_, i) => ({ task: Math.floor(i / attempts), attempt: i % attempts }));

const summarise = (rows: readonly SweepRow[], fields: Partial<SweepInput> = {}) =>
  summariseSweep({
    sweep: 'sweep',
    sweepKey: 'key',
    input: { ...input, ...fields },
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
    taskScores.slice(0, 3).map(({ task, counted, passed, leftOut: out }) => [task, counted, passed, out]),
    [
      ['task-0', 2, 1, 0],
      ['task-1', 0, 0, 2],
      ['set/2', 0, 0, 1],
    ],
  );
  assert.equal(result.outcomes.scored, 3, 'an outcome is final, whatever sampled it');
});

it('counts a retried attempt once, by its last rollout, and its whole cost', () => {
  const { result, leftOut } = summarise([row(0, 0, { retry: 2 }), row(0, 0, lost), row(0, 0, { ...lost, retry: 1 })]);
  assert.deepEqual([result.counted, result.retried, leftOut.length], [1, 2, 0]);
  assert.deepEqual([result.cost.rollouts, result.cost.promptTokens, result.cost.wallSeconds], [3, 300, 60]);
});

it('computes pass@k for each k over the same tasks, up to the fewest counted attempts at one', () => {
  // Five hard tasks lost one attempt each. Without them, pass@4 would be 1.
  const rows = tasksOf(10, 4).map(({ task, attempt }) =>
    task < 5 ? row(task, attempt) : row(task, attempt, attempt === 3 ? lost : { reward: 0 }),
  );
  const { result } = summarise(rows, { attempts: 4 });
  assert.deepEqual(
    result.passAtK.map(({ k, mean, tasks: over }) => [k, mean, over]),
    [
      [1, 0.5, 10],
      [2, 0.5, 10],
      [3, 0.5, 10],
    ],
  );
  const [first] = result.passAtK;
  assert.deepEqual(first, { k: 1, ...result.passAt1 });
  assert.ok(first !== undefined && first.low > 0.1 && first.high < 0.9);
});

it('counts an end of the agent that it does not score as a failure', () => {
  const unscored = {
    outcome: 'cancelled',
    reward: null,
    stop: 'deadline',
    failure: {
      type: 'Excluded',
      message: 'the run does not score an agent that ends by deadline',
      stage: 'awaitAgent',
    },
  } as const;
  const rows = tasksOf(10, 1).map(({ task }) => row(task, 0, task < 6 ? {} : unscored));
  const { result, leftOut, taskScores } = summarise([...rows, row(0, 1, { outcome: 'cancelled', reward: null })]);
  assert.deepEqual([result.passAt1?.mean, result.passAt1?.tasks, result.meanReward], [0.6, 10, 0.6]);
  assert.deepEqual([result.counted, result.unscored, result.leftOut.cancelled, leftOut.length], [10, 4, 1, 1]);
  assert.deepEqual(taskScores.at(-1)?.rewards, [0]);
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
  const { result, leftOut, flagged } = summarise(rows, { onFlag: { 'program-shadow': 'zero', exit: 'exclude' } });
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
