import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseReward, parseScores } from '../../infra/grading/tests/reward.ts';
import { resolutionRewards } from '../../workflows/algorithms/reward.ts';
import { lackingFor, rewardOfSteps } from '../../workflows/algorithms/task-step.ts';
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

  it('is their common value if all weighted scores are equal, and never above the highest', () => {
    const weights = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,3}$/),
      fc.oneof(fc.integer({ min: 0, max: 20 }), fc.double({ min: 0, max: 1e6, noNaN: true })),
      { minKeys: 1, maxKeys: 24 },
    );
    fc.assert(
      fc.property(weights, score, (given, common) => {
        fc.pre(Object.values(given).some((one) => one > 0));
        const allOf = (value: number) => Object.fromEntries(Object.keys(given).map((name) => [name, value]));
        return weightedReward(allOf(1), given) === 1 && weightedReward(allOf(common), given) === common;
      }),
      { numRuns: 1_000 },
    );
    const ones = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, 1]));
    for (let count = 1; count <= 64; count += 1) assert.equal(weightedReward(ones(count), ones(count)), 1, `${count}`);
    assert.equal(weightedReward({ a: 1, b: 1, c: 1, free: 0 }, { a: 3, b: 2, c: 1, free: 0 }), 1);
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

  it('lets the next step begin if it is the least one, up to a rounding error', () => {
    // 0.6 + 0.3 is 0.8999999999999999.
    const reward = weightedReward({ a: 1, b: 1, c: 0 }, { a: 0.6, b: 0.3, c: 0.1 });
    assert.deepEqual(lackingFor({ minReward: 0.9 }, { value: reward }), []);
    assert.deepEqual(lackingFor({ minScores: { a: 1 } }, { value: 1, scores: { a: 0.9999999999999999 } }), []);
    assert.equal(lackingFor({ minReward: 0.9 }, { value: 0.899_999 }).length, 1);
    const steps = (value: number, count: number) => Array.from({ length: count }, () => ({ reward: value }));
    for (const value of [0.1, 0.7, 1]) assert.equal(rewardOfSteps(steps(value, 6), {}, 'evaluation'), value);
    assert.equal(rewardOfSteps([], {}, 'training'), 0);
  });

  it('takes rounding errors past 0 and 1 for the bound', () => {
    assert.deepEqual(parseScores('{"a": 1.0000000000000002, "b": -1e-17}'), { a: 1, b: 0 });
    assert.equal(parseReward('reward.txt', '1.0000000000000002'), 1);
    assert.throws(() => parseReward('reward.txt', '1.000001'), isOf('InvalidReward'));
    assert.equal(weightedReward({ a: 1.0000000000000002 }, { a: 1 }), 1);
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
