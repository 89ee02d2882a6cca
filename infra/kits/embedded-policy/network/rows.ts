import type { ArenaPlan } from '../kernels/arena.ts';
import type { Gemm, Kernels } from '../kernels/kernels.ts';
import type { ModelConfig } from '../model/config.ts';
import type { Parameter, ParameterLayout } from '../model/parameters.ts';

// The part of the transformer that treats every row (one token of one sequence) alike: all but attention. Sampler and trainer
// both run exactly this code, so that a row's result depends neither on which of them computes it nor on the rows beside it.
//
//   x = E[token] + P[position]
//   per layer: x += attention(rmsNorm(x) Wqkv) Wo;  x += silu(rmsNorm(x) Wup) Wdown
//   logits = rmsNorm(x) E^T

/** A model's weights in an arena: the flat vector, and the embedding once more, transposed, for the logits. */
export interface NetworkPlan {
  readonly config: ModelConfig;
  readonly layout: ParameterLayout;
  readonly weights: number;
  readonly embeddingTransposed: number;
}

export interface Network extends NetworkPlan {
  readonly kernels: Kernels;
}

/** Activations of one layer for up to a fixed number of rows; all are kept for the backward pass. */
export interface LayerBuffers {
  readonly input: number;
  readonly inputInverseRms: number;
  readonly inputNormed: number;
  readonly qkv: number;
  readonly attended: number;
  readonly middle: number;
  readonly middleInverseRms: number;
  readonly middleNormed: number;
  readonly up: number;
  readonly activated: number;
  readonly output: number;
}

export interface LogitBuffers {
  readonly inverseRms: number;
  readonly normed: number;
  readonly logits: number;
}

export function planNetwork(plan: ArenaPlan, config: ModelConfig, layout: ParameterLayout): NetworkPlan {
  const weights = plan.take(layout.count);
  return { config, layout, weights, embeddingTransposed: plan.take(config.vocabSize * config.hiddenSize) };
}

/** Plans the buffers of a layer. `input` and `output` may be the same: the input is not read after the output is written. */
export function planLayer(
  plan: ArenaPlan,
  config: ModelConfig,
  rows: number,
  { input, output }: Pick<LayerBuffers, 'input' | 'output'>,
): LayerBuffers {
  const { hiddenSize: d, intermediateSize: f } = config;
  return {
    input,
    inputInverseRms: plan.take(rows),
    inputNormed: plan.take(rows * d),
    qkv: plan.take(rows * 3 * d),
    attended: plan.take(rows * d),
    middle: plan.take(rows * d),
    middleInverseRms: plan.take(rows),
    middleNormed: plan.take(rows * d),
    up: plan.take(rows * f),
    activated: plan.take(rows * f),
    output,
  };
}

export function planLogits(plan: ArenaPlan, config: ModelConfig, rows: number): LogitBuffers {
  return {
    inverseRms: plan.take(rows),
    normed: plan.take(rows * config.hiddenSize),
    logits: plan.take(rows * config.vocabSize),
  };
}

export function loadNetworkWeights(network: Network, weights: Float32Array): void {
  const { kernels, config, layout } = network;
  kernels.f32.set(weights, network.weights);
  const { vocabSize: v, hiddenSize: d } = config;
  kernels.transpose({
    target: network.embeddingTransposed,
    targetRow: v,
    source: network.weights + layout.embedding.offset,
    sourceRow: d,
    rows: v,
    columns: d,
  });
}

export function at(network: NetworkPlan, parameter: Parameter): number {
  return network.weights + parameter.offset;
}

/** Writes row `row` of x: the token's embedding plus its position's. */
export function embedRow(
  network: Network,
  x: number,
  row: number,
  { token, position }: { readonly token: number; readonly position: number },
): void {
  const { f32 } = network.kernels;
  const d = network.config.hiddenSize;
  const embedding = at(network, network.layout.embedding) + token * d;
  const offset = at(network, network.layout.positions) + position * d;
  const target = x + row * d;
  for (let i = 0; i < d; i++) f32[target + i] = (f32[embedding + i] as number) + (f32[offset + i] as number);
}

export function beforeAttention(network: Network, layer: number, buffers: LayerBuffers, rows: number): void {
  const { kernels, config } = network;
  const d = config.hiddenSize;
  const { attentionNorm, qkv } = layerParameters(network, layer);
  kernels.rmsNorm({
    y: buffers.inputNormed,
    inverseRms: buffers.inputInverseRms,
    x: buffers.input,
    gain: at(network, attentionNorm),
    rows,
    width: d,
  });
  multiply(kernels, { c: buffers.qkv, a: buffers.inputNormed, b: at(network, qkv), m: rows, n: 3 * d, k: d });
}

export function afterAttention(network: Network, layer: number, buffers: LayerBuffers, rows: number): void {
  const { kernels, config } = network;
  const { hiddenSize: d, intermediateSize: f } = config;
  const { output, mlpNorm, up, down } = layerParameters(network, layer);
  copyRows(kernels, buffers.middle, buffers.input, rows * d);
  addProduct(kernels, { c: buffers.middle, a: buffers.attended, b: at(network, output), m: rows, n: d, k: d });
  kernels.rmsNorm({
    y: buffers.middleNormed,
    inverseRms: buffers.middleInverseRms,
    x: buffers.middle,
    gain: at(network, mlpNorm),
    rows,
    width: d,
  });
  multiply(kernels, { c: buffers.up, a: buffers.middleNormed, b: at(network, up), m: rows, n: f, k: d });
  kernels.silu(buffers.activated, buffers.up, rows * f);
  copyRows(kernels, buffers.output, buffers.middle, rows * d);
  addProduct(kernels, { c: buffers.output, a: buffers.activated, b: at(network, down), m: rows, n: d, k: f });
}

export function computeLogits(network: Network, buffers: LogitBuffers, x: number, rows: number): void {
  const { kernels, config, layout } = network;
  const { hiddenSize: d, vocabSize: v } = config;
  const { inverseRms, normed, logits } = buffers;
  kernels.rmsNorm({ y: normed, inverseRms, x, gain: at(network, layout.finalNorm), rows, width: d });
  multiply(kernels, { c: logits, a: normed, b: network.embeddingTransposed, m: rows, n: v, k: d });
}

/** Returns the log softmax of one logit from the statistics of its row. Every logprob is computed here. */
export function logprobOf(logit: number, maximum: number, sumOfExponentials: number): number {
  return Math.fround(logit - maximum - Math.log(sumOfExponentials));
}

/** A product of dense matrices that are stored row by row: A[m,k] B[k,n]. */
export type DenseProduct = Pick<Gemm, 'c' | 'a' | 'b' | 'm' | 'n' | 'k'>;

/** C = A B */
export function multiply(kernels: Kernels, { c, a, b, m, n, k }: DenseProduct): void {
  kernels.gemm({ c, cRow: n, a, aRow: k, aColumn: 1, b, bRow: n, m, n, k, accumulate: false });
}

/** C += A B */
function addProduct(kernels: Kernels, { c, a, b, m, n, k }: DenseProduct): void {
  kernels.gemm({ c, cRow: n, a, aRow: k, aColumn: 1, b, bRow: n, m, n, k, accumulate: true });
}

export function layerParameters(network: NetworkPlan, layer: number) {
  const parameters = network.layout.layers[layer];
  if (parameters === undefined)
    throw new RangeError(`layer: expected a number below ${network.layout.layers.length}, got ${layer}`);
  return parameters;
}

function copyRows(kernels: Kernels, target: number, source: number, count: number): void {
  kernels.f32.copyWithin(target, source, source + count);
}
