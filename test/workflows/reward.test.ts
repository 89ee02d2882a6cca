import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseScores } from '../../infra/grading/tests/reward.ts';
import { resolutionRewards } from '../../workflows/algorithms/reward.ts';
import { weightedReward } from '../../workflows/algorithms/weighted-reward.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Resolution } from '../../workflows/contracts/resolution.ts';

const share = fc.tuple(fc.nat(50), fc.nat(50)).map(([a, b]) => ({ good: Math.min(a, b), total: Math.max(a, b) }));
const resolution = fc.record<Resolution>({
  status: fc.constantFrom('resolved', 'partial', 'unresolved', 'refused'),
  failToPass: share,
  passToPass: share,
  decidedBy: fc.constant([]),
  reason: fc.constant(''),
});
const unresolved: Resolution = {
  status: 'unresolved',
  failToPass: { good: 1, total: 2 },
  passToPass: { good: 7, total: 8 },
  decidedBy: [],
  reason: '',
};
const isOf = (type: string) => (error: unknown) => error instanceof TemperFailure && error.type === type;

describe('the reward of a resolution', () => {
  for (const [name, policy] of Object.entries(resolutionRewards)) {
    it(`by ${name} is a number from 0 to 1, and 0 if the log was refused`, () => {
      fc.assert(
        fc.property(resolution, (one) => {
          const reward = policy(one.status === 'partial' ? { ...one, failToPass: { good: 1, total: 3 } } : one);
          return reward >= 0 && reward <= 1 && (one.status !== 'refused' || reward === 0);
        }),
      );
    });
  }

  it('rewards whole solutions, all tests, or tests to fix while no other test broke', () => {
    const partial: Resolution = { ...unresolved, status: 'partial', passToPass: { good: 8, total: 8 } };
    const pay = (one: Resolution) => Object.values(resolutionRewards).map((policy) => policy(one));
    assert.deepEqual(pay(unresolved), [0, 0.8, 0]);
    assert.deepEqual(pay(partial), [0, 0.9, 0.5]);
    assert.deepEqual(pay({ ...partial, status: 'resolved', failToPass: { good: 2, total: 2 } }), [1, 1, 1]);
  });
});

describe('the reward of named scores', () => {
  const weight = fc.record({ style: fc.nat(9), tests: fc.nat(9).map((one) => one + 1) });
  const score = fc.double({ min: 0, max: 1, noNaN: true });

  it('is their weighted mean, and does not depend on the scale of the weights', () => {
    fc.assert(
      fc.property(weight, score, score, (weights, style, tests) => {
        const reward = weightedReward({ style, tests }, weights);
        const scaled = weightedReward({ style, tests }, { style: weights.style * 8, tests: weights.tests * 8 });
        const within = reward >= Math.min(style, tests) - 1e-9 && reward <= Math.max(style, tests) + 1e-9;
        return within && reward <= 1 && Math.abs(reward - scaled) < 1e-9;
      }),
    );
    assert.equal(weightedReward({ style: 1, tests: 0.5, note: 0 }, { style: 1, tests: 3 }), 0.625);
  });

  it('fails if a score is missing or out of range, or if the weights are invalid', () => {
    for (const scores of [
      {},
      { tests: Number.NaN },
      { tests: 1.5 },
      { tests: -0.1 },
      { tests: Number.POSITIVE_INFINITY },
    ]) {
      assert.throws(() => weightedReward(scores, { tests: 1 }), isOf('InvalidReward'));
    }
    for (const weights of [{}, { tests: 0 }, { tests: -1, style: 2 }, { tests: Number.NaN }, { tests: Infinity }]) {
      assert.throws(() => weightedReward({ tests: 1, style: 1 }, weights), isOf('InvalidInput'));
    }
    assert.throws(() => weightedReward({}, { toString: 1 }), isOf('InvalidReward'));
  });

  it('accepts only files with numbers from 0 to 1', () => {
    assert.deepEqual(parseScores('{"tests": 1, "style": 0.25}\n'), { tests: 1, style: 0.25 });
    for (const bad of [
      '',
      '1',
      'null',
      '[1]',
      '{"a": "1"}',
      '{"a": 2}',
      '{"a": -0.5}',
      '{"a": NaN}',
      '{"a": 1e999}',
      '{',
    ]) {
      assert.throws(() => parseScores(bad), isOf('InvalidReward'), bad);
    }
  });
});
