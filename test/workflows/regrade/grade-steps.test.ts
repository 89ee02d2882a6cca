import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finishedSteps } from '../../../activities/control/regrades/read-finished.ts';
import type { FinishedSteps } from '../../../workflows/contracts/regrade.ts';
import type { StepResult } from '../../../workflows/contracts/rollout.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { gradeSteps } from '../../../workflows/regrade/grade-steps.ts';

const blob = { digest: 'a'.repeat(64), size: 1, mediaType: 'text/plain' };
const diff = { patch: blob, baseCommit: 'b'.repeat(40), files: 1, dropped: 0, tooLarge: false };
const task: Task = {
  id: 'three',
  bundle: blob,
  image: 'any',
  workdir: '/workspace',
  cpus: 1,
  memoryMb: 256,
  diskMb: 64,
  agentTimeoutSec: null,
  evaluationTimeoutSec: 20,
  steps: [{ name: 'one', minReward: 0.5 }, { name: 'two', minReward: 0.5, evaluationTimeoutSec: 9 }, { name: 'three' }],
};

interface Regrading extends Partial<Omit<FinishedSteps, 'worked'>> {
  readonly of?: Task;
  readonly scores?: Readonly<Record<string, number>> | undefined;
}

/** Grades steps again whose tests now give these values; null stands for no reward. */
async function regrade(values: readonly (number | null)[], options: Regrading = {}) {
  const { restPrevented = false, of = task, scores, purpose = 'evaluation' } = options;
  const asked: (readonly [number | undefined, number | null])[] = [];
  const finished = { worked: values.map(() => ({ diff })), restPrevented, purpose };
  const graded = await gradeSteps(of, finished, async (_, one) => {
    const value = values[asked.length] ?? null;
    asked.push([one.step, one.evaluationTimeoutSec]);
    assert.equal(one.steps, undefined);
    const kind = value === null ? ('no-reward' as const) : ('graded' as const);
    return {
      regraded: { reward: value ?? 0, kind, log: `log-${one.step}` },
      value,
      ...(scores !== undefined && { scores }),
    };
  });
  return { graded, asked };
}

describe('the steps of a task that are graded again', () => {
  it('have the mean of their rewards, or the last one, and each its own limits', async () => {
    const { graded, asked } = await regrade([1, 0.5, 0]);
    assert.deepEqual(graded, { reward: 0.5, kind: 'graded', log: 'log-3' });
    assert.deepEqual(asked, [
      [1, 20],
      [2, 9],
      [3, 20],
    ]);
    const final = await regrade([1, 0.5, 0], { of: { ...task, rewardOfSteps: 'final' } });
    assert.deepEqual(final.graded, { reward: 0, kind: 'graded', log: 'log-3' });
  });

  it('end at a step that is below its min_reward now', async () => {
    const { graded, asked } = await regrade([1, 0.25, 1]);
    assert.deepEqual([graded, asked.length], [{ reward: 0.625, kind: 'graded', log: 'log-2' }, 2]);
    const trained = await regrade([1, 0.25, 1], { purpose: 'training' });
    assert.deepEqual(trained.graded, { reward: 1.25 / 3, kind: 'graded', log: 'log-2' });
  });

  it('end at a step of which a score is too low or missing now, whatever its reward', async () => {
    const [one, ...others] = task.steps ?? [];
    assert.ok(one !== undefined);
    const scored: Task = { ...task, steps: [{ ...one, minScores: { style: 0.5 } }, ...others] };
    for (const [scores, count] of [
      [{ style: 0.5 }, 3],
      [{ style: 0.25 }, 1],
      [{ other: 1 }, 1],
      [undefined, 1],
    ] as const) {
      const { asked } = await regrade([1, 1, 1], { of: scored, scores });
      assert.equal(asked.length, count, JSON.stringify(scores));
    }
  });

  it('count as 0 after a step whose tests give no reward, and after one that prevented them', async () => {
    assert.deepEqual((await regrade([1, null])).graded, { reward: 1 / 3, kind: 'no-reward', log: 'log-2' });
    assert.deepEqual((await regrade([1, 0.5], { restPrevented: true })).graded, {
      reward: 0.5,
      kind: 'graded',
      log: 'log-2',
    });
  });

  it('have no new reward if one of them never began and would begin now', async () => {
    const { graded } = await regrade([1, 0.5]);
    assert.deepEqual(graded, { leftOut: "its step three never began, and would begin with today's rewards" });
  });
});

describe('the steps of a rollout that has ended', () => {
  const purpose = 'evaluation';
  const step = (name: string, more: Partial<StepResult> = {}): StepResult => ({
    name,
    reward: 1,
    stop: 'submitted',
    agentLog: null,
    verdict: 'graded',
    diff,
    ...more,
  });
  const never = (name: string): StepResult => ({ name, reward: 0, stop: null, agentLog: null });
  const read = (steps: readonly StepResult[] | undefined, now: Pick<Task, 'steps' | 'gradedIn'> = task) =>
    finishedSteps({ failure: null, ...(steps !== undefined && { steps }) }, now, purpose);

  it('are those that began, and it says whether they prevented the others', () => {
    assert.deepEqual(read([step('one'), step('two')]), { worked: [{ diff }, { diff }], restPrevented: false, purpose });
    assert.deepEqual(read([step('one'), never('two')]), { worked: [{ diff }], restPrevented: true, purpose });
    const silent = read([step('one', { verdict: 'no-reward' }), never('two'), never('three')]);
    assert.deepEqual(silent, { worked: [{ diff }], restPrevented: false, purpose });
    assert.equal(read(undefined, {}), null);
  });

  it('cannot be graded again if their work is missing, or if the task has other steps now', () => {
    const { diff: _, ...without } = step('one');
    assert.match(String(read([without])), /was not kept/);
    for (const [steps, now] of [
      [[step('one')], {}],
      [undefined, task],
      [[step('uno')], task],
    ] as const) {
      assert.equal(read(steps, now), 'its task had other steps than it has now');
    }
  });
});
