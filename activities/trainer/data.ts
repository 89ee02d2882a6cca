import type { Datum } from '../../infra/trainer/trainer.ts';
import type { Advantages, Batch, BatchSegment } from '../../workflows/contracts/batch.ts';

/**
 * Turns the pinned batch into data for the trainer: inputs are all tokens but the last, targets all but the first. The
 * advantage of a token is weight × (rollout's advantage − klCoef × (behaviour logprob − reference logprob)): the KL penalty
 * as a per-token reward (arXiv 2203.02155, §3.5), which any trainer can apply.
 */
export function toData(
  batch: Batch,
  { advantages, tokenWeights }: Advantages,
  kl: { readonly coefficient: number; readonly reference: readonly (readonly number[])[] } | null,
): readonly Datum[] {
  return batch.segments.map((entry, index) => {
    const datum = toContext(entry);
    const advantage = advantages[entry.rollout] ?? 0;
    const weight = tokenWeights[entry.rollout] ?? 0;
    const reference = kl?.reference[index];
    return {
      ...datum,
      advantages: datum.weights.map((trained, position) => {
        if (trained === 0) return 0;
        const drift = reference === undefined ? 0 : (datum.logprobs?.[position] ?? 0) - (reference[position] ?? 0);
        return weight * (advantage - (kl?.coefficient ?? 0) * drift);
      }),
    };
  });
}

/** Turns a segment into a datum without advantages, which is enough to request logprobs. */
export function toContext({ segment }: BatchSegment): Datum {
  const { tokens, mask, logprobs } = segment;
  return {
    tokens: tokens.slice(0, -1),
    targets: tokens.slice(1),
    weights: mask.slice(1),
    logprobs: logprobs.slice(1),
  };
}
