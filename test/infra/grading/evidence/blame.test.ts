import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blamed } from '../../../../infra/grading/evidence/blame.ts';
import type { Evidence } from '../../../../infra/grading/evidence/evidence.ts';
import type { KnownRun } from '../../../../infra/grading/evidence/known-runs.ts';

const evidence: readonly Evidence[] = [
  { kind: 'program', what: 'bats', text: 'they do not find bats' },
  { kind: 'full-disk', what: 'disk', text: 'their disk is full' },
];
const run = (more: Partial<KnownRun> = {}): KnownRun => ({
  isSolved: false,
  reward: 0,
  cutBy: null,
  evidence,
  ...more,
});
const judge = (reward: number, untouched: KnownRun, ...references: KnownRun[]) =>
  blamed(evidence, { reward, untouched, references }).map(({ kind }) => kind);

describe('a verdict with evidence of a fault', () => {
  it('is that of the task if all runs without the work show the same', () => {
    assert.deepEqual(judge(0, run(), run()), ['program', 'full-disk']);
    assert.deepEqual(judge(0, run(), run({ evidence: evidence.slice(1) })), ['full-disk']);
    assert.deepEqual(judge(0, run(), run(), run({ evidence: [] })), []);
    assert.deepEqual(judge(0, run()), ['program', 'full-disk']);
  });

  it('is that of the work if this is better than all of them, or if the reference solution is better than nothing', () => {
    assert.deepEqual(judge(0.5, run(), run()), []);
    assert.deepEqual(judge(0.5, run({ reward: 0.5 }), run()), ['program', 'full-disk']);
    assert.deepEqual(judge(0, run(), run({ reward: 0.5 })), []);
  });

  it('is that of the work if the reference solution ran out of time or into a limit, but for a full disk', () => {
    assert.deepEqual(judge(0, run(), run({ cutBy: 'time' })), []);
    assert.deepEqual(judge(0, run(), run({ cutBy: 'limit' })), ['full-disk']);
    assert.deepEqual(judge(0, run({ cutBy: 'time' }), run()), ['program', 'full-disk']);
  });
});
