import type { ArenaPlan } from '../kernels/arena.ts';
import type { Kernels } from '../kernels/kernels.ts';
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
  input: number,
  output: number,
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
  kernels.transpose(network.embeddingTransposed, v, network.weights + layout.embedding.offset, d, v, d);
}

export function at(network: NetworkPlan, parameter: Parameter): number {
  return network.weights + parameter.offset;
}

/** Writes row `row` of x: the token's embedding plus its position's. */
export function embedRow(network: Network, x: number, row: number, token: number, position: number): void {
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
  kernels.rmsNorm(buffers.inputNormed, buffers.inputInverseRms, buffers.input, at(network, attentionNorm), rows, d);
  multiply(kernels, buffers.qkv, buffers.inputNormed, at(network, qkv), rows, 3 * d, d, false);
}

export function afterAttention(network: Network, layer: number, buffers: LayerBuffers, rows: number): void {
  const { kernels, config } = network;
  const { hiddenSize: d, intermediateSize: f } = config;
  const { output, mlpNorm, up, down } = layerParameters(network, layer);
  copyRows(kernels, buffers.middle, buffers.input, rows * d);
  multiply(kernels, buffers.middle, buffers.attended, at(network, output), rows, d, d, true);
  kernels.rmsNorm(buffers.middleNormed, buffers.middleInverseRms, buffers.middle, at(network, mlpNorm), rows, d);
  multiply(kernels, buffers.up, buffers.middleNormed, at(network, up), rows, f, d, false);
  kernels.silu(buffers.activated, buffers.up, rows * f);
  copyRows(kernels, buffers.output, buffers.middle, rows * d);
  multiply(kernels, buffers.output, buffers.activated, at(network, down), rows, d, f, true);
}

export function computeLogits(network: Network, buffers: LogitBuffers, x: number, rows: number): void {
  const { kernels, config, layout } = network;
  const { hiddenSize: d, vocabSize: v } = config;
  kernels.rmsNorm(buffers.normed, buffers.inverseRms, x, at(network, layout.finalNorm), rows, d);
  multiply(kernels, buffers.logits, buffers.normed, network.embeddingTransposed, rows, v, d, false);
}

/** Returns the log softmax of one logit from the statistics of its row. Every logprob is computed here. */
export function logprobOf(logit: number, maximum: number, sumOfExponentials: number): number {
  return Math.fround(logit - maximum - Math.log(sumOfExponentials));
}

/** C[m,n] (+)= A[m,k] B[k,n], all dense and row by row. */
export function multiply(
  kernels: Kernels,
  c: number,
  a: number,
  b: number,
  m: number,
  n: number,
  k: number,
  accumulate: boolean,
): void {
  kernels.gemm({ c, cRow: n, a, aRow: k, aColumn: 1, b, bRow: n, m, n, k, accumulate });
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
