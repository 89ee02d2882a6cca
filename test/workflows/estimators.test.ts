import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { advantageRules } from '../../workflows/algorithms/advantages.ts';
import { fateInStep, spreadOf } from '../../workflows/algorithms/group-report.ts';
import { normalise, tokenWeight } from '../../workflows/algorithms/normalise.ts';
import { type Aggregation, aggregationOf, runInput, training } from '../../workflows/contracts/run.ts';

const reward = fc.double({ min: 0, max: 1, noNaN: true });
const rewards = fc.array(reward, { minLength: 1, maxLength: 32 });
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const near = (a: number, b: number, within = 1e-9): boolean => Math.abs(a - b) <= within;

describe('advantages', () => {
  for (const [name, rule] of Object.entries(advantageRules)) {
    it(`by ${name} sum to 0, keep the order of the rewards, and ignore a common offset`, () => {
      fc.assert(
        fc.property(rewards, reward, (given, shift) => {
          const values = rule(given);
          const shifted = rule(given.map((one) => one + shift));
          const ordered = given.every((a, i) =>
            given.every((b, j) => a <= b + 1e-6 || (values[i] ?? 0) >= (values[j] ?? 0)),
          );
          // The differences of rewards that differ only by rounding are noise, which grpo would amplify.
          const spread = Math.max(...given) - Math.min(...given) > 1e-4;
          const same = !spread || values.every((value, i) => near(value, shifted[i] ?? Number.NaN, 1e-6));
          return near(sum(values), 0, 1e-6) && ordered && same;
        }),
      );
    });

    it(`by ${name} are exactly 0 if all rewards are equal, up to rounding errors, and 0 is no variance`, () => {
      const flat = (given: readonly number[]): boolean => {
        const counted = normalise(
          { rollouts: given.map((value) => ({ group: 0, reward: value })), segments: [] },
          training.parse({ advantage: name }),
        );
        const zeros = [...rule(given), ...counted.advantages].every((one) => one === 0);
        return zeros && counted.zeroVarianceShare === 1 && fateInStep(spreadOf(given), 'drop') === 'zero-variance';
      };
      fc.assert(fc.property(reward, fc.integer({ min: 1, max: 32 }), (value, k) => flat(Array(k).fill(value))));
      // A sum of the same scores in another order.
      assert.ok(flat([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.6]));
    });
  }

  it('by grpo have a standard deviation of 1 and do not depend on the scale of rewards', () => {
    fc.assert(
      fc.property(rewards, fc.double({ min: 0.5, max: 100, noNaN: true }), (given, scale) => {
        if (Math.max(...given) - Math.min(...given) < 1e-3) return true;
        const values = advantageRules.grpo(given);
        const scaled = advantageRules.grpo(given.map((one) => one * scale));
        const deviation = Math.sqrt(sum(values.map((value) => value ** 2)) / values.length);
        return near(deviation, 1, 1e-3) && values.every((value, i) => near(value, scaled[i] ?? Number.NaN, 1e-3));
      }),
    );
  });

  it('by grpo are divided by minStd if the rewards differ less', () => {
    const close = [0.98, 0.981, 0.98, 0.98];
    assert.ok(Math.max(...advantageRules.grpo(close)) > 1.7);
    const floored = advantageRules.grpo(close, 0.1);
    assert.ok(near(floored[1] ?? 0, 0.0075, 1e-6), `${floored}`);
    assert.deepEqual(advantageRules.grpo([0, 1], 0.1), advantageRules.grpo([0, 1]));
    const batch = { rollouts: close.map((one) => ({ group: 0, reward: one })), segments: [] };
    assert.deepEqual(normalise(batch, training.parse({ minStd: 0.1 })).advantages, floored);
  });

  it('by rloo are those by dr-grpo times k / (k − 1)', () => {
    fc.assert(
      fc.property(fc.array(reward, { minLength: 2, maxLength: 32 }), (given) => {
        const plain = advantageRules['dr-grpo'](given);
        const factor = given.length / (given.length - 1);
        return advantageRules.rloo(given).every((value, i) => near(value, factor * (plain[i] ?? Number.NaN)));
      }),
    );
  });
});

describe('the estimator of a run', () => {
  const parse = (given: object) => runInput.safeParse({ tasks: 'generated:train/1', training: given });
  const problems = (given: object) =>
    parse(given).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);

  it('is the one of the paper for dr-grpo alone, without its length bias', () => {
    assert.equal(aggregationOf(training.parse({ advantage: 'dr-grpo' })), 'constant');
    assert.equal(aggregationOf(training.parse({})), 'rollout-mean');
    const batch = {
      rollouts: [1, 0].map((one) => ({ group: 0, reward: one })),
      segments: [2, 6].map((length, rollout) => ({ rollout, segment: { mask: Array<0 | 1>(length).fill(1) } })),
    };
    const { advantages, tokenWeights } = normalise(batch, training.parse({ advantage: 'dr-grpo' }));
    assert.deepEqual(
      [advantages, tokenWeights],
      [
        [0.5, -0.5],
        [1 / 2_000, 1 / 2_000],
      ],
    );
    const other = normalise(batch, training.parse({ aggregation: 'constant', constantTokens: 4 }));
    assert.deepEqual(other.tokenWeights, [1 / 8, 1 / 8]);
  });

  it('is refused if its settings contradict each other', () => {
    for (const aggregation of ['rollout-mean', 'token-mean'])
      assert.match(
        problems({ advantage: 'dr-grpo', aggregation })?.join() ?? '',
        /^training.aggregation: expected constant/,
      );
    assert.match(problems({ advantage: 'rloo', minStd: 0.1 })?.join() ?? '', /^training.minStd: .* advantage rloo/);
    assert.match(problems({ constantTokens: 100 })?.join() ?? '', /^training.constantTokens: .* aggregation constant$/);
    assert.equal(parse({ advantage: 'dr-grpo', aggregation: 'constant', constantTokens: 9 }).success, true);
    assert.equal(parse({ minStd: 0.05, aggregation: 'token-mean' }).success, true);
  });
});

describe('token weights', () => {
  const rollouts = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 40 });
  const weigh = (aggregation: Aggregation, tokens: readonly number[]) =>
    tokens.map((rolloutTokens) =>
      tokenWeight(aggregation, {
        rollouts: tokens.length,
        batchTokens: sum(tokens),
        rolloutTokens,
        constantTokens: 50,
      }),
    );

  it('of a batch sum to 1 over its trained tokens', () => {
    fc.assert(
      fc.property(fc.constantFrom('rollout-mean' as const, 'token-mean' as const), rollouts, (aggregation, tokens) =>
        near(sum(weigh(aggregation, tokens).map((weight, i) => weight * (tokens[i] ?? 0))), 1),
      ),
    );
  });

  it('weigh rollouts equally by rollout-mean, and tokens equally by token-mean', () => {
    fc.assert(
      fc.property(rollouts, (tokens) => {
        const byRollout = weigh('rollout-mean', tokens).map((weight, i) => weight * (tokens[i] ?? 0));
        const byToken = weigh('token-mean', tokens);
        return (
          byRollout.every((one) => near(one, 1 / tokens.length)) && byToken.every((one) => near(one, byToken[0] ?? 0))
        );
      }),
    );
  });

  it('are the same for each token of each rollout by constant, whatever the lengths', () => {
    fc.assert(
      fc.property(rollouts, (tokens) =>
        weigh('constant', tokens).every((weight) => near(weight, 1 / (50 * tokens.length))),
      ),
    );
  });

  it('are 0 if nothing is trained, never infinite', () => {
    for (const aggregation of ['rollout-mean', 'token-mean', 'constant'] as const) {
      const none = { rollouts: 3, batchTokens: 0, rolloutTokens: 0, constantTokens: 50 };
      assert.equal(tokenWeight(aggregation, none), 0);
    }
  });
});
