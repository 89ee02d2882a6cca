import type { ParameterLayout } from './parameters.ts';
import { createRandom } from './random.ts';

/** Initial weights: the same bits for the same architecture and seed. */
export function initializeWeights(layout: ParameterLayout, seed: number): Float32Array {
  const random = createRandom(seed);
  const weights = new Float32Array(layout.count);
  for (const { offset, count, initial } of layout.all) {
    for (let i = offset; i < offset + count; i++) {
      weights[i] = initial.kind === 'ones' ? 1 : initial.deviation * random.normal();
    }
  }
  return weights;
}
