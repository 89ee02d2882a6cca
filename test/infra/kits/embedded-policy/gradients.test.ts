import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseModelConfig } from '../../../../infra/kits/embedded-policy/model/config.ts';
import { createParameterLayout } from '../../../../infra/kits/embedded-policy/model/parameters.ts';
import { createRandom } from '../../../../infra/kits/embedded-policy/model/random.ts';
import { initializeWeights } from '../../../../infra/kits/embedded-policy/model/weights-file.ts';
import { createTrainingPass } from '../../../../infra/kits/embedded-policy/network/training-pass.ts';
import { referenceLogprobs } from './support/reference-model.ts';

const config = parseModelConfig({
  model_type: 'temper-tiny',
  vocab_size: 12,
  hidden_size: 16,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  intermediate_size: 20,
  max_position_embeddings: 48,
});
const layout = createParameterLayout(config);
const weights = initializeWeights(layout, 3);
/** A length above one attention block that is not a multiple of 4. */
const length = 38;
const random = createRandom(5);
const token = (): number => Math.floor(random.next() * config.vocabSize);
const inputs = Array.from({ length }, token);
const targets = Array.from({ length }, token);
const coefficients = Float32Array.from({ length }, (_, t) => (t % 5 === 0 ? 0 : random.next() * 2 - 1));

it('logprobs equal an independent float64 forward pass', () => {
  const pass = createTrainingPass(config, layout, config.maxPositions);
  pass.setWeights(weights);
  const logprobs = pass.forward(Int32Array.from(inputs), Int32Array.from(targets));
  const expected = referenceLogprobs(config, layout, weights, { inputs, targets });
  for (const [t, logprob] of logprobs.entries()) {
    assert.ok(Math.abs(logprob - Number(expected[t])) < 2e-6, `position ${t}: ${logprob} and ${expected[t]}`);
  }
});

it('gradients equal central differences of that pass, in every parameter tensor', () => {
  const pass = createTrainingPass(config, layout, config.maxPositions);
  pass.setWeights(weights);
  pass.forward(Int32Array.from(inputs), Int32Array.from(targets));
  pass.backward(coefficients);
  const sum = (point: Float64Array): number =>
    referenceLogprobs(config, layout, point, { inputs, targets }).reduce(
      (total, logprob, t) => total + logprob * Number(coefficients[t]),
      0,
    );
  const probe = createRandom(9);
  for (const parameter of layout.all) {
    for (let n = 0; n < 4; n++) {
      const index = parameter.offset + Math.floor(probe.next() * parameter.count);
      const expected = centralDifference(sum, index);
      const got = Number(pass.gradients[index]);
      const tolerance = 1e-5 + 1e-4 * Math.abs(expected);
      assert.ok(Math.abs(got - expected) < tolerance, `${parameter.name}[${index}]: ${got} and ${expected}`);
    }
  }
});

function centralDifference(f: (point: Float64Array) => number, index: number): number {
  const step = 1e-5;
  const moved = (by: number): number => {
    const point = Float64Array.from(weights);
    point[index] = Number(point[index]) + by;
    return f(point);
  };
  return (moved(step) - moved(-step)) / (2 * step);
}
