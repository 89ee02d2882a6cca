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
      network.kernels.transpose({
        target,
        targetRow: rows,
        source: at(network, matrix),
        sourceRow: columns,
        rows,
        columns,
      });
    }
  }
}

export function backward(activations: Activations, buffers: BackwardBuffers, input: BackwardInput): void {
  const rows = input.inputs.length;
  backwardLogits(activations, buffers, input);
  for (let layer = activations.layers.length - 1; layer >= 0; layer--) {
    const saved = activations.layers[layer];
    if (saved === undefined) continue;
    backwardMlp(activations.network, buffers, { layer, saved, rows });
    backwardAttention(activations, buffers, { layer, saved, rows });
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
  addOuterProduct(kernels, { gradient, a: final.logits, b: final.normed, rows, m: v, n: d });
  multiply(kernels, { c: buffers.dRows, a: final.logits, b: at(network, layout.embedding), m: rows, n: d, k: v });
  f32.fill(0, buffers.dx, buffers.dx + rows * d);
  const { x, inverseRms } = final;
  backwardNorm(network, buffers, { gain: layout.finalNorm, x, inverseRms, rows });
}

/** One layer of the backward pass, with what the forward pass saved of it. */
interface SavedLayer {
  readonly layer: number;
  readonly saved: LayerBuffers;
  readonly rows: number;
}

function backwardMlp(network: Network, buffers: BackwardBuffers, { layer, saved, rows }: SavedLayer): void {
  const { kernels, config } = network;
  const { hiddenSize: d, intermediateSize: f } = config;
  const { up, down, mlpNorm } = layerParameters(network, layer);
  const { gradients, transposed, dx, dWide, dRows } = buffers;
  addOuterProduct(kernels, { gradient: gradients + down.offset, a: saved.activated, b: dx, rows, m: f, n: d });
  multiply(kernels, { c: dWide, a: dx, b: transposed + down.offset, m: rows, n: f, k: d });
  kernels.siluBackward(dWide, saved.up, rows * f);
  addOuterProduct(kernels, { gradient: gradients + up.offset, a: saved.middleNormed, b: dWide, rows, m: d, n: f });
  multiply(kernels, { c: dRows, a: dWide, b: transposed + up.offset, m: rows, n: d, k: f });
  backwardNorm(network, buffers, { gain: mlpNorm, x: saved.middle, inverseRms: saved.middleInverseRms, rows });
}

function backwardAttention(
  activations: Activations,
  buffers: BackwardBuffers,
  { layer, saved, rows }: SavedLayer,
): void {
  const { network } = activations;
  const { kernels, config } = network;
  const d = config.hiddenSize;
  const { qkv, output, attentionNorm } = layerParameters(network, layer);
  const { gradients, transposed, dx, dRows, dQkv } = buffers;
  addOuterProduct(kernels, { gradient: gradients + output.offset, a: saved.attended, b: dx, rows, m: d, n: d });
  multiply(kernels, { c: dRows, a: dx, b: transposed + output.offset, m: rows, n: d, k: d });
  backwardHeads(activations, buffers, { layer, saved, rows });
  addOuterProduct(kernels, { gradient: gradients + qkv.offset, a: saved.inputNormed, b: dQkv, rows, m: d, n: 3 * d });
  multiply(kernels, { c: dRows, a: dQkv, b: transposed + qkv.offset, m: rows, n: d, k: 3 * d });
  backwardNorm(network, buffers, { gain: attentionNorm, x: saved.input, inverseRms: saved.inputInverseRms, rows });
}

/** Computes the gradient of queries, keys and values (dQkv) from that of the attended rows (dRows). */
function backwardHeads(
  activations: Activations,
  buffers: BackwardBuffers,
  { layer, saved: { qkv }, rows }: SavedLayer,
): void {
  const { kernels, config } = activations.network;
  const { f32 } = kernels;
  const d = config.hiddenSize;
  const positions = roundUp4(rows);
  const { valuesTransposed } = activations.attention;
  const { dQkv, dRows, dScores } = buffers;
  // Padding columns are multiplied by zero probabilities, so they must be finite.
  f32.fill(0, valuesTransposed, valuesTransposed + d * positions);
  kernels.transpose({
    target: valuesTransposed,
    targetRow: positions,
    source: qkv + 2 * d,
    sourceRow: 3 * d,
    rows,
    columns: d,
  });
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

interface SavedNorm {
  readonly gain: Parameter;
  readonly x: number;
  readonly inverseRms: number;
  readonly rows: number;
}

/** dx += the gradient of dRows through the norm. */
function backwardNorm(network: Network, buffers: BackwardBuffers, { gain, x, inverseRms, rows }: SavedNorm): void {
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

interface OuterProduct {
  readonly gradient: number;
  readonly a: number;
  readonly b: number;
  readonly rows: number;
  readonly m: number;
  readonly n: number;
}

/** gradient[m,n] += A^T B of the dense A[rows,m] and B[rows,n]. */
function addOuterProduct(kernels: Kernels, { gradient, a, b, rows, m, n }: OuterProduct): void {
  kernels.gemm({ c: gradient, cRow: n, a, aRow: 1, aColumn: m, b, bRow: n, m, n, k: rows, accumulate: true });
}
