import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { PolicyError } from '../../../../infra/kits/embedded-policy/errors.ts';
import { klPenalty } from '../../../../infra/kits/embedded-policy/losses/kl-penalty.ts';
import { findLoss, losses, resolveLossConfig } from '../../../../infra/kits/embedded-policy/losses/registry.ts';
import { lossNames } from '../../../../infra/kits/embedded-policy/trainer-core.ts';

const defaults = { clip_low_threshold: 0.8, clip_high_threshold: 1.2, kl_coef: 0 };
const logprob = fc.double({ min: -6, max: -0.01, noNaN: true });
const token = fc.record({
  logprob,
  samplerLogprob: logprob,
  weight: fc.double({ min: 0.1, max: 3, noNaN: true }),
  advantage: fc.double({ min: -3, max: 3, noNaN: true }),
});

for (const name of lossNames) {
  it(`the slope of ${name} is the derivative of its loss by the logprob`, () => {
    const loss = losses[name];
    fc.assert(
      fc.property(token, (input) => {
        const ratio = Math.exp(input.logprob - input.samplerLogprob);
        fc.pre(Math.abs(ratio - 0.8) > 1e-3 && Math.abs(ratio - 1.2) > 1e-3); // kinks
        const at = (l: number) => loss.token({ ...input, logprob: l }, defaults);
        const step = 1e-6;
        const { slope } = at(input.logprob);
        const difference = (at(input.logprob + step).loss - at(input.logprob - step).loss) / (2 * step);
        // The weight of cispo is not differentiated: while it is frozen, the loss is linear in the logprob.
        const measured = name === 'cispo' ? at(input.logprob).loss / input.logprob : difference;
        assert.ok(Math.abs(measured - slope) < 1e-4 * (1 + Math.abs(slope)), `${measured} and ${slope}`);
      }),
    );
  });
}

it('losses have the values of their formulas', () => {
  const input = { logprob: Math.log(0.5), samplerLogprob: Math.log(0.25), weight: 2, advantage: 1.5 }; // ratio 2
  const near = (a: number, b: number): void => assert.ok(Math.abs(a - b) < 1e-12, `${a} and ${b}`);
  near(losses.cross_entropy.token(input, defaults).loss, 2 * Math.log(2));
  near(losses.importance_sampling.token(input, defaults).loss, -2 * 2 * 1.5);
  near(losses.ppo.token(input, defaults).loss, -2 * 1.2 * 1.5);
  near(losses.ppo.token({ ...input, advantage: -1.5 }, defaults).loss, 2 * 2 * 1.5);
  near(losses.cispo.token(input, defaults).loss, -2 * 1.2 * 1.5 * Math.log(0.5));
});

it('ppo removes the gradient only where the clip is the pessimistic choice', () => {
  const slope = (ratio: number, advantage: number): number =>
    losses.ppo.token({ logprob: Math.log(ratio) - 2, samplerLogprob: -2, weight: 1, advantage }, defaults).slope;
  assert.equal(slope(1.3, 1), 0);
  assert.equal(slope(0.7, -1), 0);
  for (const [ratio, advantage] of [
    [1.3, -1],
    [0.7, 1],
    [1, 1],
    [1, -1],
  ] as const)
    assert.notEqual(slope(ratio, advantage), 0);
});

it('the KL penalty is never negative, zero at equality, and its slope is its derivative', () => {
  fc.assert(
    fc.property(logprob, logprob, (l, q) => {
      const { k3, slope } = klPenalty(l, q, 1, 0.5);
      assert.ok(k3 >= 0);
      const step = 1e-5;
      const measured = (klPenalty(l + step, q, 1, 0.5).loss - klPenalty(l - step, q, 1, 0.5).loss) / (2 * step);
      assert.ok(Math.abs(measured - slope) < 1e-5 * (1 + Math.abs(slope)));
      assert.equal(klPenalty(l, l, 1, 1).loss, 0);
    }),
  );
});

it('unknown losses and settings are refused by name, with the choices', () => {
  const refused = (code: string, text: RegExp) => (error: unknown) =>
    error instanceof PolicyError && error.code === code && text.test(error.message);
  assert.throws(
    () => findLoss('gspo'),
    refused('unknown-loss', /cross_entropy, importance_sampling, ppo, cispo, got gspo/),
  );
  const { ppo, cross_entropy } = losses;
  assert.throws(() => resolveLossConfig(cross_entropy, { kl_coef: 1 }), refused('invalid-loss-config', /kl_coef/));
  assert.throws(() => resolveLossConfig(ppo, { kl_coef: Number.NaN }), refused('invalid-loss-config', /got NaN/));
  const inverted = { clip_low_threshold: 1.3 };
  assert.throws(() => resolveLossConfig(ppo, inverted), refused('invalid-loss-config', /absolute ratios/));
  assert.deepEqual(resolveLossConfig(ppo, {}), defaults);
});
