import { type ArenaPlan, roundUp4 } from '../kernels/arena.ts';
import type { ModelConfig } from '../model/config.ts';
import { attentionBlockRows, type HeadBlock } from './attention.ts';
import { type LayerBuffers, type LogitBuffers, type Network, planLayer, planLogits } from './rows.ts';

// The values that the forward pass of one sequence leaves for the backward pass, and the order in which attention visits them.

export interface AttentionBuffers {
  /** Keys and values of the current layer, [hidden, positions]. */
  readonly keysTransposed: number;
  readonly valuesTransposed: number;
  readonly stats: number;
}

export interface Activations {
  readonly network: Network;
  readonly layers: readonly LayerBuffers[];
  /** Probabilities as [layer][head][row][position]. */
  readonly probabilities: readonly number[];
  readonly attention: AttentionBuffers;
  readonly final: LogitBuffers & { readonly x: number; readonly stats: number };
}

export function planActivations(plan: ArenaPlan, config: ModelConfig, rows: number) {
  const { hiddenSize: d, heads } = config;
  const positions = roundUp4(rows);
  const residuals = Array.from({ length: config.layers + 1 }, () => plan.take(rows * d));
  const x = (index: number): number => residuals[index] ?? 0;
  return {
    layers: Array.from({ length: config.layers }, (_, l) =>
      planLayer(plan, config, rows, { input: x(l), output: x(l + 1) }),
    ),
    probabilities: Array.from({ length: config.layers }, () => plan.take(heads * rows * positions)),
    attention: {
      keysTransposed: plan.take(d * positions),
      valuesTransposed: plan.take(d * positions),
      stats: plan.take(2 * rows),
    },
    final: { ...planLogits(plan, config, rows), x: x(config.layers), stats: plan.take(2 * rows) },
  };
}

/** Yields the blocks of all heads of one layer, as offsets. */
export function* headBlocks(
  activations: Activations,
  layer: number,
  rows: number,
): Generator<HeadBlock & { head: number }> {
  const { hiddenSize: d, heads } = activations.network.config;
  const width = d / heads;
  const positions = roundUp4(rows);
  const { qkv = 0, attended = 0 } = activations.layers[layer] ?? {};
  const probabilities = activations.probabilities[layer] ?? 0;
  for (let head = 0; head < heads; head++) {
    for (let first = 0; first < rows; first += attentionBlockRows) {
      yield {
        head,
        first,
        rows: Math.min(attentionBlockRows, rows - first),
        width,
        query: qkv + first * 3 * d + head * width,
        queryRow: 3 * d,
        keysTransposed: activations.attention.keysTransposed + head * width * positions,
        keysRow: positions,
        values: qkv + 2 * d + head * width,
        valuesRow: 3 * d,
        probabilities: probabilities + (head * rows + first) * positions,
        probabilitiesRow: positions,
        output: attended + first * d + head * width,
        outputRow: d,
        stats: activations.attention.stats,
      };
    }
  }
}
