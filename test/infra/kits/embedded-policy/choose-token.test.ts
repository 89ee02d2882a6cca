import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { createRandom } from '../../../../infra/kits/embedded-policy/model/random.ts';
import { chooseToken } from '../../../../infra/kits/embedded-policy/sampler/choose-token.ts';

const distribution = fc
  .array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: 2, maxLength: 20 })
  .map((raw) => Float32Array.from(raw, (value) => value / raw.reduce((a, b) => a + b, 0)));

const unrestricted = { temperature: 1, topP: 1, topK: 0 };

it('tokens are drawn with their probabilities', () => {
  const probabilities = new Float32Array([0.5, 0, 0.3, 0.2]);
  const random = createRandom(1);
  const counts = [0, 0, 0, 0];
  const draws = 20_000;
  for (let i = 0; i < draws; i++) {
    const token = chooseToken(probabilities, unrestricted, random);
    counts[token] = (counts[token] ?? 0) + 1;
  }
  for (const [token, count] of counts.entries()) {
    const expected = Number(probabilities[token]);
    assert.ok(Math.abs(count / draws - expected) <= 5 * Math.sqrt(expected / draws), `${token}: ${count}`); // 5 sigma
  }
});

it('temperature 0 and top-k 1 take the likeliest token, and the smaller id on a tie', () => {
  fc.assert(
    fc.property(distribution, fc.nat(), (probabilities, seed) => {
      const likeliest = probabilities.indexOf(Math.max(...probabilities));
      assert.equal(chooseToken(probabilities, { ...unrestricted, temperature: 0 }, createRandom(seed)), likeliest);
      assert.equal(chooseToken(probabilities, { ...unrestricted, topK: 1 }, createRandom(seed)), likeliest);
      assert.equal(chooseToken(probabilities, { ...unrestricted, topP: 1e-9 }, createRandom(seed)), likeliest);
    }),
  );
});

it('top-k and top-p draw only from their set of tokens, and the set of top-p has its share of probability', () => {
  const topP = fc.double({ min: 0.05, max: 1, noNaN: true });
  fc.assert(
    fc.property(distribution, fc.nat(), fc.integer({ min: 0, max: 20 }), topP, (probabilities, seed, topK, p) => {
      const token = chooseToken(probabilities, { temperature: 1, topP: p, topK }, createRandom(seed));
      const likelier = probabilities.filter((value) => value > Number(probabilities[token]));
      if (topK > 0) assert.ok(likelier.length < topK);
      if (topK === 0) assert.ok(likelier.reduce((a, b) => a + b, 0) < p + 1e-6);
    }),
  );
});
