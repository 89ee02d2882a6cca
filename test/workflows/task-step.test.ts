import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rewardForGivingUp, rewardOfSteps } from '../../workflows/algorithms/task-step.ts';
import type { Task } from '../../workflows/contracts/task.ts';

const steps: Task['steps'] = [{ name: 'one', minReward: 0.5 }, { name: 'two', minReward: 0.5 }, { name: 'three' }];
const rewards = (...all: readonly number[]) => all.map((reward) => ({ reward }));

describe('the reward of a task of several steps', () => {
  it('is the mean over the steps that ran in an evaluation, and over all steps in training', () => {
    assert.equal(rewardOfSteps(rewards(0.4), { steps }, 'evaluation'), 0.4);
    assert.equal(rewardOfSteps(rewards(0.4), { steps }, 'training'), 0.4 / 3);
    for (const purpose of ['evaluation', 'training'] as const) {
      assert.equal(rewardOfSteps(rewards(1, 0.5, 0), { steps }, purpose), 0.5);
    }
  });

  it('is never higher in training for an agent that ends at a step than for one that does better and fails the next', () => {
    for (const rule of [undefined, 'final'] as const) {
      const task = { steps, ...(rule !== undefined && { rewardOfSteps: rule }) };
      const [ended, wentOn] = [rewards(0.4), rewards(0.6, 0)].map((ran) => rewardOfSteps(ran, task, 'training'));
      assert.ok((ended ?? 1) <= (wentOn ?? 0), `${rule}: ${ended} and ${wentOn}`);
    }
    assert.equal(rewardOfSteps(rewards(1, 0.4), { steps, rewardOfSteps: 'final' }, 'training'), 0);
    assert.equal(rewardOfSteps(rewards(1, 0.4), { steps, rewardOfSteps: 'final' }, 'evaluation'), 0.4);
  });
});

describe('a task that rewards giving up', () => {
  it('has a step before the last one that ends it', () => {
    const text = 'ending at step one with a reward just below 0.5 gives up to 0.50 in an evaluation';
    assert.equal(rewardForGivingUp({ steps }), `${text}, and failing step two after it 0.25`);
    assert.equal(rewardForGivingUp({ steps, rewardOfSteps: 'final' }), `${text}, and failing step two after it 0.00`);
    const scored: Task['steps'] = [{ name: 'one' }, { name: 'two', minScores: { style: 1 } }, { name: 'three' }];
    assert.match(
      rewardForGivingUp({ steps: scored }) ?? '',
      /^ending at step two by a low score beside a reward of 1 gives up to 1\.00 .* failing step three after it 0\.67$/,
    );
  });

  it('does not have steps that all run, nor a single piece of work', () => {
    assert.equal(rewardForGivingUp({ steps: [{ name: 'one' }, { name: 'two', minReward: 1 }] }), null);
    assert.equal(rewardForGivingUp({ steps: [{ name: 'one', minReward: 0 }, { name: 'two' }] }), null);
    assert.equal(rewardForGivingUp({}), null);
  });
});
