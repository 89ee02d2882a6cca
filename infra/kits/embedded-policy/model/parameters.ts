import { createHash } from 'node:crypto';
import type { ModelConfig } from './config.ts';

// The named parameters of a model as ranges of one flat vector, in the order in which they are stored and hashed. Matrices are
// [in, out]: y = x W. The embedding is tied: it also gives the logits, x E^T.

export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  /** Offset in floats from the start of the flat vector. */
  readonly offset: number;
  readonly count: number;
  readonly initial: InitialValue;
}

/** Ones, or a normal distribution with this standard deviation. */
export type InitialValue = { readonly kind: 'ones' } | { readonly kind: 'normal'; readonly deviation: number };

export interface LayerParameters {
  readonly attentionNorm: Parameter;
  readonly qkv: Parameter;
  readonly output: Parameter;
  readonly mlpNorm: Parameter;
  readonly up: Parameter;
  readonly down: Parameter;
}

export interface ParameterLayout {
  readonly embedding: Parameter;
  readonly positions: Parameter;
  readonly layers: readonly LayerParameters[];
  readonly finalNorm: Parameter;
  readonly all: readonly Parameter[];
  readonly count: number;
}

const embeddingDeviation = 0.05;

export function createParameterLayout(config: ModelConfig): ParameterLayout {
  const all: Parameter[] = [];
  let next = 0;
  const add = (name: string, shape: readonly number[], initial: InitialValue): Parameter => {
    const count = shape.reduce((product, size) => product * size, 1);
    const parameter = { name, shape, offset: next, count, initial };
    all.push(parameter);
    next += count;
    return parameter;
  };
  const { hiddenSize: d, intermediateSize: f } = config;
  const ones: InitialValue = { kind: 'ones' };
  const matrix = (name: string, rows: number, columns: number, gain = 1): Parameter =>
    add(name, [rows, columns], { kind: 'normal', deviation: gain / Math.sqrt(rows) });
  // Each layer adds twice to the residual stream, whose variance should stay near 1.
  const residualGain = 1 / Math.sqrt(2 * config.layers);

  const embedding = add('embedding.weight', [config.vocabSize, d], { kind: 'normal', deviation: embeddingDeviation });
  const positions = add('positions.weight', [config.maxPositions, d], {
    kind: 'normal',
    deviation: embeddingDeviation,
  });
  const layers = Array.from({ length: config.layers }, (_, i) => ({
    attentionNorm: add(`layers.${i}.attention_norm.weight`, [d], ones),
    qkv: matrix(`layers.${i}.attention.qkv.weight`, d, 3 * d),
    output: matrix(`layers.${i}.attention.output.weight`, d, d, residualGain),
    mlpNorm: add(`layers.${i}.mlp_norm.weight`, [d], ones),
    up: matrix(`layers.${i}.mlp.up.weight`, d, f),
    down: matrix(`layers.${i}.mlp.down.weight`, f, d, residualGain),
  }));
  const finalNorm = add('final_norm.weight', [d], ones);
  return { embedding, positions, layers, finalNorm, all, count: next };
}

/** Returns the SHA-256 (hex) of the flat vector as little-endian float32. */
export function checksumOf(weights: Float32Array): string {
  return createHash('sha256')
    .update(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength))
    .digest('hex');
}

/** Returns the index of the first NaN or infinity, or -1. */
export function firstNonFinite(values: ArrayLike<number>): number {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return i;
  return -1;
}
