/**
 * The weight of one trained token, by which its rollout's advantage is multiplied. The loss is the sum over tokens of
 * weight × advantage × ratio.
 *
 * - `rollout-mean`: 1 / (rollouts in the batch × trained tokens of the rollout). Over all segments of a rollout, so that a
 *   rollout that was forked into many counts once.
 * - `token-mean`: 1 / trained tokens of the batch (DAPO, arXiv 2503.14476)
 */
export function tokenWeight(
  aggregation: 'rollout-mean' | 'token-mean',
  counts: { readonly rollouts: number; readonly batchTokens: number; readonly rolloutTokens: number },
): number {
  const share = aggregation === 'rollout-mean' ? counts.rollouts * counts.rolloutTokens : counts.batchTokens;
  return share === 0 ? 0 : 1 / share;
}
