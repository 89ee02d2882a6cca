import { createArenaPlan, roundUp4 } from '../kernels/arena.ts';
import { createKernels } from '../kernels/simd.ts';
import type { ModelConfig } from '../model/config.ts';
import type { ParameterLayout } from '../model/parameters.ts';
import { type Activations, headBlocks, planActivations } from './activations.ts';
import { attendBlock } from './attention.ts';
import { backward, planBackward, prepareBackward } from './backward.ts';
import {
  afterAttention,
  beforeAttention,
  computeLogits,
  embedRow,
  loadNetworkWeights,
  logprobOf,
  planNetwork,
} from './rows.ts';

// Forward and backward over one sequence at a time. Gradients add up sequence by sequence in the order given, so that the
// division of a batch into calls changes no bit of them.

export interface TrainingPass {
  setWeights(weights: Float32Array): void;
  /** Returns the logprob of each target; activations are kept for `backward`. */
  forward(inputTokens: Int32Array, targetTokens: Int32Array): Float32Array;
  /** Adds the gradient of sum(coefficients * logprobs) of the last `forward` to `gradients`. */
  backward(coefficients: Float32Array): void;
  /** The gradients as a view, to read and to set. */
  readonly gradients: Float32Array;
}

export function createTrainingPass(config: ModelConfig, layout: ParameterLayout, contextLength: number): TrainingPass {
  const plan = createArenaPlan();
  const networkPlan = planNetwork(plan, config, layout);
  const planned = planActivations(plan, config, contextLength);
  const backwardBuffers = planBackward(plan, config, layout, contextLength);
  const kernels = createKernels(plan.floats);
  const activations: Activations = { network: { ...networkPlan, kernels }, ...planned };
  const { gradients } = backwardBuffers;
  let last: { readonly inputs: Int32Array; readonly targets: Int32Array } | undefined;
  return {
    gradients: kernels.f32.subarray(gradients, gradients + layout.count),
    setWeights(weights) {
      loadNetworkWeights(activations.network, weights);
      prepareBackward(activations.network, backwardBuffers);
      last = undefined;
    },
    forward(inputs, targets) {
      last = { inputs, targets };
      return forward(activations, inputs, targets);
    },
    backward(coefficients) {
      if (last === undefined)
        throw new Error('backward: expected a forward pass under the same weights first, got none');
      backward(activations, backwardBuffers, { ...last, coefficients });
      last = undefined; // the logits have been overwritten
    },
  };
}

function forward(activations: Activations, inputs: Int32Array, targets: Int32Array): Float32Array {
  const { network, layers, final } = activations;
  const { kernels, config } = network;
  const rows = inputs.length;
  const first = layers[0]?.input ?? 0;
  for (const [t, token] of inputs.entries()) embedRow(network, first, t, { token, position: t });
  for (const [l, buffers] of layers.entries()) {
    beforeAttention(network, l, buffers, rows);
    attend(activations, l, rows);
    afterAttention(network, l, buffers, rows);
  }
  computeLogits(network, final, final.x, rows);
  const { f32 } = kernels;
  const v = config.vocabSize;
  const read = (offset: number): number => f32[offset] as number;
  const logits = Float32Array.from(targets, (target, t) => read(final.logits + t * v + target));
  const shape = { x: final.logits, row: v, rows, width: v, firstValid: v, validStep: 0, scale: 1, stats: final.stats };
  kernels.softmax(shape);
  return logits.map((logit, t) => logprobOf(logit, read(final.stats + 2 * t), read(final.stats + 2 * t + 1)));
}

function attend(activations: Activations, layer: number, rows: number): void {
  const { kernels, config } = activations.network;
  const d = config.hiddenSize;
  const qkv = activations.layers[layer]?.qkv ?? 0;
  kernels.transpose({
    target: activations.attention.keysTransposed,
    targetRow: roundUp4(rows),
    source: qkv + d,
    sourceRow: 3 * d,
    rows,
    columns: d,
  });
  for (const block of headBlocks(activations, layer, rows)) attendBlock(kernels, block);
}
