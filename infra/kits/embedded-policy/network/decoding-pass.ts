import { createArenaPlan, roundUp4 } from '../kernels/arena.ts';
import { createKernels } from '../kernels/simd.ts';
import type { ModelConfig } from '../model/config.ts';
import type { ParameterLayout } from '../model/parameters.ts';
import { attendBlock, attentionBlockRows } from './attention.ts';
import {
  afterAttention,
  beforeAttention,
  computeLogits,
  embedRow,
  type LayerBuffers,
  type LogitBuffers,
  loadNetworkWeights,
  logprobOf,
  type Network,
  planLayer,
  planLogits,
  planNetwork,
} from './rows.ts';

// Forward over a mixed batch of rows from many sequences, each with its own key-value cache (a slot). One row of a sequence is a
// decode step, several consecutive ones are (a part of) a prompt. A row's result does not depend on the others.

/** Consecutive positions of one slot; its earlier positions must be in the cache. */
export interface RowGroup {
  readonly slot: number;
  readonly firstPosition: number;
  readonly tokens: Int32Array;
  /** Rows to compute logits of; 'none' only fills the cache. */
  readonly logits: 'none' | 'last' | 'all';
  /** Divisor of the logits; above 0. */
  readonly temperature: number;
}

export interface DecodingPass {
  setWeights(weights: Float32Array): void;
  /** Computes the rows; returns the index of each group's first logit row. */
  run(groups: readonly RowGroup[]): readonly number[];
  /** Returns the probabilities of a logit row of the last run, at its temperature: a view, valid until the next run. */
  probabilities(row: number): Float32Array;
  logprob(row: number, token: number): number;
  /** Copies the first `positions` of a cache. */
  copyCache(from: number, to: number, positions: number): void;
}

export interface DecodingLimits {
  readonly contextLength: number;
  readonly slots: number;
  /** Maximum over all groups of one run together. */
  readonly rows: number;
}

interface Decoder {
  readonly network: Network;
  readonly limits: DecodingLimits;
  readonly layer: LayerBuffers;
  readonly caches: readonly LayerCache[];
  readonly scores: number;
  readonly stats: number;
  readonly final: LogitBuffers & { readonly x: number; readonly probabilities: number; readonly stats: number };
}

/** Keys as [slot][hidden][position], values as [slot][position][hidden]. */
interface LayerCache {
  readonly keysTransposed: number;
  readonly values: number;
}

export function createDecodingPass(config: ModelConfig, layout: ParameterLayout, limits: DecodingLimits): DecodingPass {
  const decoder = createDecoder(config, layout, limits);
  const { network, final } = decoder;
  const { f32 } = network.kernels;
  const v = config.vocabSize;
  return {
    setWeights: (weights) => loadNetworkWeights(network, weights),
    run: (groups) => run(decoder, groups),
    probabilities: (row) => f32.subarray(final.probabilities + row * v, final.probabilities + (row + 1) * v),
    logprob(row, token) {
      const stats = final.stats + 2 * row;
      return logprobOf(f32[final.logits + row * v + token] as number, f32[stats] as number, f32[stats + 1] as number);
    },
    copyCache: (from, to, positions) => copyCache(decoder, from, to, positions),
  };
}

function createDecoder(config: ModelConfig, layout: ParameterLayout, limits: DecodingLimits): Decoder {
  const plan = createArenaPlan();
  const { hiddenSize: d } = config;
  const networkPlan = planNetwork(plan, config, layout);
  const x = plan.take(limits.rows * d);
  const positions = roundUp4(limits.contextLength);
  const planned = {
    limits,
    layer: planLayer(plan, config, limits.rows, { input: x, output: x }),
    caches: Array.from({ length: config.layers }, () => ({
      keysTransposed: plan.take(limits.slots * d * positions),
      values: plan.take(limits.slots * d * positions),
    })),
    scores: plan.take(attentionBlockRows * positions),
    stats: plan.take(2 * attentionBlockRows),
    final: {
      ...planLogits(plan, config, limits.rows),
      x: plan.take(limits.rows * d),
      probabilities: plan.take(limits.rows * config.vocabSize),
      stats: plan.take(2 * limits.rows),
    },
  };
  return { network: { ...networkPlan, kernels: createKernels(plan.floats) }, ...planned };
}

function run(decoder: Decoder, groups: readonly RowGroup[]): readonly number[] {
  const { network, layer, limits } = decoder;
  const rows = groups.reduce((sum, group) => sum + group.tokens.length, 0);
  if (rows > limits.rows) throw new RangeError(`decoding pass: expected at most ${limits.rows} rows, got ${rows}`);
  let row = 0;
  for (const { tokens, firstPosition } of groups) {
    for (const [i, token] of tokens.entries())
      embedRow(network, layer.input, row++, { token, position: firstPosition + i });
  }
  for (let l = 0; l < network.config.layers; l++) {
    beforeAttention(network, l, layer, rows);
    row = 0;
    for (const group of groups) {
      attendGroup(decoder, l, group, row);
      row += group.tokens.length;
    }
    afterAttention(network, l, layer, rows);
  }
  return finish(decoder, groups);
}

function attendGroup(decoder: Decoder, layer: number, group: RowGroup, row: number): void {
  const { network, layer: buffers, limits } = decoder;
  const { kernels, config } = network;
  const { hiddenSize: d, heads } = config;
  const width = d / heads;
  const positions = roundUp4(limits.contextLength);
  const { keysTransposed = 0, values = 0 } = decoder.caches[layer] ?? {};
  const keys = keysTransposed + group.slot * d * positions;
  const cached = values + group.slot * d * positions;
  const qkv = buffers.qkv + row * 3 * d;
  const rows = group.tokens.length;
  kernels.transpose({
    target: keys + group.firstPosition,
    targetRow: positions,
    source: qkv + d,
    sourceRow: 3 * d,
    rows,
    columns: d,
  });
  for (let i = 0; i < rows; i++) {
    const source = qkv + i * 3 * d + 2 * d;
    kernels.f32.copyWithin(cached + (group.firstPosition + i) * d, source, source + d);
  }
  for (let head = 0; head < heads; head++) {
    for (let first = 0; first < rows; first += attentionBlockRows) {
      attendBlock(kernels, {
        first: group.firstPosition + first,
        rows: Math.min(attentionBlockRows, rows - first),
        width,
        query: qkv + first * 3 * d + head * width,
        queryRow: 3 * d,
        keysTransposed: keys + head * width * positions,
        keysRow: positions,
        values: cached + head * width,
        valuesRow: d,
        probabilities: decoder.scores,
        probabilitiesRow: positions,
        output: buffers.attended + (row + first) * d + head * width,
        outputRow: d,
        stats: decoder.stats,
      });
    }
  }
}

/** Gathers the rows that need logits, and turns them into probabilities at each group's temperature. */
function finish(decoder: Decoder, groups: readonly RowGroup[]): readonly number[] {
  const { network, layer, final } = decoder;
  const { kernels, config } = network;
  const { f32 } = kernels;
  const { hiddenSize: d, vocabSize: v } = config;
  const firstRows: number[] = [];
  let row = 0;
  let wanted = 0;
  for (const { tokens, logits } of groups) {
    const count = logits === 'none' ? 0 : logits === 'last' ? 1 : tokens.length;
    row += tokens.length;
    f32.copyWithin(final.x + wanted * d, layer.output + (row - count) * d, layer.output + row * d);
    firstRows.push(wanted);
    wanted += count;
  }
  if (wanted === 0) return firstRows;
  computeLogits(network, final, final.x, wanted);
  for (const [g, group] of groups.entries()) {
    if (group.temperature === 1) continue;
    const start = firstRows[g] ?? 0;
    const end = firstRows[g + 1] ?? wanted;
    for (let i = final.logits + start * v; i < final.logits + end * v; i++)
      f32[i] = (f32[i] as number) / group.temperature;
  }
  f32.copyWithin(final.probabilities, final.logits, final.logits + wanted * v);
  const shape = { row: v, rows: wanted, width: v, firstValid: v, validStep: 0, scale: 1, stats: final.stats };
  kernels.softmax({ x: final.probabilities, ...shape });
  return firstRows;
}

function copyCache(decoder: Decoder, from: number, to: number, count: number): void {
  const { kernels, config } = decoder.network;
  const { f32 } = kernels;
  const d = config.hiddenSize;
  const positions = roundUp4(decoder.limits.contextLength);
  for (const { keysTransposed, values } of decoder.caches) {
    for (let i = 0; i < d; i++) {
      const source = keysTransposed + (from * d + i) * positions;
      f32.copyWithin(keysTransposed + (to * d + i) * positions, source, source + count);
    }
    const source = values + from * d * positions;
    f32.copyWithin(values + to * d * positions, source, source + count * d);
  }
}
