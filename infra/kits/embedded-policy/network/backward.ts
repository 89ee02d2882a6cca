import { type ArenaPlan, roundUp4 } from '../kernels/arena.ts';
import type { Kernels } from '../kernels/kernels.ts';
import type { ModelConfig } from '../model/config.ts';
import type { Parameter, ParameterLayout } from '../model/parameters.ts';
import { type Activations, headBlocks } from './activations.ts';
import { attendBlockBackward } from './attention.ts';
import { at, type LayerBuffers, layerParameters, multiply, type Network } from './rows.ts';

// The backward pass: explicit gradients of everything in rows.ts and attention.ts, from last to first.

export interface BackwardBuffers {
  /** Flat gradients, laid out like the weights. */
  readonly gradients: number;
  /** Transposed copies [out, in] of the matrices, flat, laid out like the weights. */
  readonly transposed: number;
  readonly dx: number;
  readonly dRows: number;
  readonly dWide: number;
  readonly dQkv: number;
  readonly dScores: number;
}

export interface BackwardInput {
  readonly inputs: Int32Array;
  readonly targets: Int32Array;
  /** d loss / d logprob of each target */
  readonly coefficients: Float32Array;
}

export function planBackward(
  plan: ArenaPlan,
  config: ModelConfig,
  layout: ParameterLayout,
  rows: number,
): BackwardBuffers {
  const { hiddenSize: d, intermediateSize: f } = config;
  return {
    gradients: plan.take(layout.count),
    transposed: plan.take(layout.count),
    dx: plan.take(rows * d),
    dRows: plan.take(rows * d),
    dWide: plan.take(rows * f),
    dQkv: plan.take(rows * 3 * d),
    dScores: plan.take(rows * roundUp4(rows)),
  };
}

/** Transposes the matrices, once per change of weights. */
export function prepareBackward(network: Network, buffers: BackwardBuffers): void {
  for (const { qkv, output, up, down } of network.layout.layers) {
    for (const matrix of [qkv, output, up, down]) {
      const [rows = 0, columns = 0] = matrix.shape;
      const target = buffers.transposed + matrix.offset;
      network.kernels.transpose(target, rows, at(network, matrix), columns, rows, columns);
    }
  }
}

export function backward(activations: Activations, buffers: BackwardBuffers, input: BackwardInput): void {
  const rows = input.inputs.length;
  backwardLogits(activations, buffers, input);
  for (let layer = activations.layers.length - 1; layer >= 0; layer--) {
    const layerBuffers = activations.layers[layer];
    if (layerBuffers === undefined) continue;
    backwardMlp(activations.network, buffers, layer, layerBuffers, rows);
    backwardAttention(activations, buffers, layer, layerBuffers, rows);
  }
  backwardEmbedding(activations.network, buffers, input.inputs);
}

/** d logprob / d logit = [it is the target] - probability; the logits' buffer holds the probabilities. */
function backwardLogits(activations: Activations, buffers: BackwardBuffers, input: BackwardInput): void {
  const { network, final } = activations;
  const { kernels, config, layout } = network;
  const { f32 } = kernels;
  const { hiddenSize: d, vocabSize: v } = config;
  const rows = input.inputs.length;
  for (const [t, coefficient] of input.coefficients.entries()) {
    const row = final.logits + t * v;
    for (let i = row; i < row + v; i++) f32[i] = -coefficient * (f32[i] as number);
    const target = row + (input.targets[t] ?? 0);
    f32[target] = (f32[target] as number) + coefficient;
  }
  const gradient = buffers.gradients + layout.embedding.offset;
  addOuterProduct(kernels, gradient, final.logits, final.normed, rows, v, d);
  multiply(kernels, buffers.dRows, final.logits, at(network, layout.embedding), rows, d, v, false);
  f32.fill(0, buffers.dx, buffers.dx + rows * d);
  backwardNorm(network, buffers, layout.finalNorm, final.x, final.inverseRms, rows);
}

function backwardMlp(
  network: Network,
  buffers: BackwardBuffers,
  layer: number,
  saved: LayerBuffers,
  rows: number,
): void {
  const { kernels, config } = network;
  const { hiddenSize: d, intermediateSize: f } = config;
  const { up, down, mlpNorm } = layerParameters(network, layer);
  const { gradients, transposed, dx, dWide, dRows } = buffers;
  addOuterProduct(kernels, gradients + down.offset, saved.activated, dx, rows, f, d);
  multiply(kernels, dWide, dx, transposed + down.offset, rows, f, d, false);
  kernels.siluBackward(dWide, saved.up, rows * f);
  addOuterProduct(kernels, gradients + up.offset, saved.middleNormed, dWide, rows, d, f);
  multiply(kernels, dRows, dWide, transposed + up.offset, rows, d, f, false);
  backwardNorm(network, buffers, mlpNorm, saved.middle, saved.middleInverseRms, rows);
}

function backwardAttention(
  activations: Activations,
  buffers: BackwardBuffers,
  layer: number,
  saved: LayerBuffers,
  rows: number,
): void {
  const { network } = activations;
  const { kernels, config } = network;
  const d = config.hiddenSize;
  const { qkv, output, attentionNorm } = layerParameters(network, layer);
  const { gradients, transposed, dx, dRows, dQkv } = buffers;
  addOuterProduct(kernels, gradients + output.offset, saved.attended, dx, rows, d, d);
  multiply(kernels, dRows, dx, transposed + output.offset, rows, d, d, false);
  backwardHeads(activations, buffers, layer, saved.qkv, rows);
  addOuterProduct(kernels, gradients + qkv.offset, saved.inputNormed, dQkv, rows, d, 3 * d);
  multiply(kernels, dRows, dQkv, transposed + qkv.offset, rows, d, 3 * d, false);
  backwardNorm(network, buffers, attentionNorm, saved.input, saved.inputInverseRms, rows);
}

/** Computes the gradient of queries, keys and values (dQkv) from that of the attended rows (dRows). */
function backwardHeads(
  activations: Activations,
  buffers: BackwardBuffers,
  layer: number,
  qkv: number,
  rows: number,
): void {
  const { kernels, config } = activations.network;
  const { f32 } = kernels;
  const d = config.hiddenSize;
  const positions = roundUp4(rows);
  const { valuesTransposed } = activations.attention;
  const { dQkv, dRows, dScores } = buffers;
  // padding columns are multiplied by zero probabilities: they must be finite
  f32.fill(0, valuesTransposed, valuesTransposed + d * positions);
  kernels.transpose(valuesTransposed, positions, qkv + 2 * d, 3 * d, rows, d);
  f32.fill(0, dQkv, dQkv + rows * 3 * d);
  for (const block of headBlocks(activations, layer, rows)) {
    const column = block.head * block.width;
    attendBlockBackward(kernels, {
      ...block,
      keys: qkv + d + column,
      keysPlainRow: 3 * d,
      valuesTransposed: valuesTransposed + column * positions,
      dOutput: dRows + block.first * d + column,
      dScores,
      dQuery: dQkv + block.first * 3 * d + column,
      dKeys: dQkv + d + column,
      dValues: dQkv + 2 * d + column,
      dRow: 3 * d,
    });
  }
}

/** dx += the gradient of dRows through the norm. */
function backwardNorm(
  network: Network,
  buffers: BackwardBuffers,
  gain: Parameter,
  x: number,
  inverseRms: number,
  rows: number,
): void {
  network.kernels.rmsNormBackward({
    dx: buffers.dx,
    dGain: buffers.gradients + gain.offset,
    dy: buffers.dRows,
    x,
    inverseRms,
    gain: at(network, gain),
    rows,
    width: network.config.hiddenSize,
  });
}

function backwardEmbedding(network: Network, buffers: BackwardBuffers, inputs: Int32Array): void {
  const { f32 } = network.kernels;
  const d = network.config.hiddenSize;
  for (const [t, token] of inputs.entries()) {
    const source = buffers.dx + t * d;
    const embedding = buffers.gradients + network.layout.embedding.offset + token * d;
    const position = buffers.gradients + network.layout.positions.offset + t * d;
    for (let i = 0; i < d; i++) {
      f32[embedding + i] = (f32[embedding + i] as number) + (f32[source + i] as number);
      f32[position + i] = (f32[position + i] as number) + (f32[source + i] as number);
    }
  }
}

/** gradient[m,n] += A^T B of the dense A[rows,m] and B[rows,n]. */
function addOuterProduct(
  kernels: Kernels,
  gradient: number,
  a: number,
  b: number,
  rows: number,
  m: number,
  n: number,
): void {
  kernels.gemm({ c: gradient, cRow: n, a, aRow: 1, aColumn: m, b, bRow: n, m, n, k: rows, accumulate: true });
}
