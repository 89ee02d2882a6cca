import assert from 'node:assert/strict';
import { it } from 'node:test';
import { adamStep } from '../../../../infra/kits/embedded-policy/trainer/adamw.ts';

it('AdamW follows a reference computed by hand', () => {
  const params = { learningRate: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.5, gradClipNorm: 0 };
  const start = { weights: new Float32Array([1, -2]), moment1: new Float32Array(2), moment2: new Float32Array(2) };
  const first = adamStep(start, new Float32Array([0.5, -0.25]), params, 1);
  // Both moments are corrected to g and g^2, so that step 1 is lr * (sign(g) + decay * w).
  assert.deepEqual([...first.weights], [1 - 0.1 * (1 + 0.5), -2 + 0.1 * (1 + 1)].map(Math.fround));
  const second = adamStep(first, new Float32Array([-0.1, 0.4]), params, 2);
  const expected = [
    { w: 0.85, m: 0.9 * 0.05 + 0.1 * -0.1, v: 0.99 * 0.0025 + 0.01 * 0.01 },
    { w: -1.8, m: 0.9 * -0.025 + 0.1 * 0.4, v: 0.99 * 0.000625 + 0.01 * 0.16 },
  ].map(({ w, m, v }) => w - 0.1 * (m / (1 - 0.81) / (Math.sqrt(v / (1 - 0.9801)) + 1e-8) + 0.5 * w));
  for (const [i, weight] of second.weights.entries()) assert.ok(Math.abs(weight - Number(expected[i])) < 2e-7);
  const clipped = adamStep(start, new Float32Array([30, 40]), { ...params, gradClipNorm: 5 }, 1);
  assert.equal(clipped.gradientNorm, 50);
  assert.deepEqual([...clipped.moment1], [0.3, 0.4].map(Math.fround)); // (1 - beta1) * g * 5 / 50
});
