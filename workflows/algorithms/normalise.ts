import type { Advantages, Batch } from '../contracts/batch.ts';
import { type Aggregation, aggregationOf, type Training } from '../contracts/run.ts';
import type { Segment } from '../contracts/trace.ts';
import { advantageRules } from './advantages.ts';

export interface NormalisedBatch extends Pick<Advantages, 'advantages' | 'tokenWeights'> {
  /** The share of groups whose rewards are all equal, so that all their advantages are 0. */
  readonly zeroVarianceShare: number;
}

/**
 * Computes for each rollout of a batch its advantage, from the rewards of its group, and the weight of each of its trained
 * tokens. The trainer multiplies the two.
 */
export function normalise(
  { rollouts, segments }: BatchShape,
  training: Pick<Training, 'advantage' | 'minStd' | 'aggregation' | 'constantTokens'>,
): NormalisedBatch {
  const advantages: number[] = new Array(rollouts.length).fill(0);
  const groups = Map.groupBy(rollouts.keys(), (position) => rollouts[position]?.group);
  let zeroVariance = 0;
  for (const positions of groups.values()) {
    const values = advantageRules[training.advantage](
      positions.map((position) => rollouts[position]?.reward ?? 0),
      training.minStd,
    );
    if (values.every((value) => value === 0)) zeroVariance += 1;
    for (const [i, position] of positions.entries()) advantages[position] = values[i] ?? 0;
  }
  const rolloutTokens: number[] = new Array(rollouts.length).fill(0);
  for (const { rollout, segment } of segments) {
    rolloutTokens[rollout] = (rolloutTokens[rollout] ?? 0) + trainedTokens(segment);
  }
  const batchTokens = rolloutTokens.reduce((sum, count) => sum + count, 0);
  return {
    advantages,
    tokenWeights: rolloutTokens.map((count) =>
      tokenWeight(aggregationOf(training), {
        rollouts: rollouts.length,
        batchTokens,
        rolloutTokens: count,
        constantTokens: training.constantTokens ?? defaultConstantTokens,
      }),
    ),
    zeroVarianceShare: groups.size === 0 ? 0 : zeroVariance / groups.size,
  };
}

/** The parts of a batch that decide advantages and token weights. */
export interface BatchShape {
  readonly rollouts: readonly Pick<Batch['rollouts'][number], 'group' | 'reward'>[];
  readonly segments: readonly { readonly rollout: number; readonly segment: Pick<Segment, 'mask'> }[];
}

/** The number of tokens of a segment that are trained. */
export const trainedTokens = ({ mask }: Pick<Segment, 'mask'>): number =>
  mask.reduce<number>((sum, one) => sum + one, 0);

/** The numbers that weigh the tokens of a rollout. */
export interface TokenCounts {
  readonly rollouts: number;
  readonly batchTokens: number;
  readonly rolloutTokens: number;
  readonly constantTokens: number;
}

/** The divisor of `constant` by default. A loss of another scale makes the same update, since AdamW divides by its gradients. */
const defaultConstantTokens = 1_000;

/**
 * The weight of one trained token, by which its rollout's advantage is multiplied. The loss is the sum over tokens of
 * weight × advantage × ratio.
 *
 * - `rollout-mean`: 1 / (rollouts in the batch × trained tokens of the rollout). All segments of a rollout count together,
 *   so that a rollout that was forked into many counts once.
 * - `token-mean`: 1 / trained tokens of the batch (DAPO, arXiv 2503.14476)
 * - `constant`: 1 / (rollouts in the batch × constantTokens), whatever their lengths (Dr. GRPO, arXiv 2503.20783, §3.2)
 */
export function tokenWeight(
  aggregation: Aggregation,
  { rollouts, batchTokens, rolloutTokens, constantTokens }: TokenCounts,
): number {
  if (rolloutTokens === 0) return 0;
  const divisors: Readonly<Record<Aggregation, number>> = {
    'rollout-mean': rollouts * rolloutTokens,
    'token-mean': batchTokens,
    constant: rollouts * constantTokens,
  };
  return 1 / divisors[aggregation];
}
