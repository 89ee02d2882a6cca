import type { RolloutResult } from '../../workflows/contracts/rollout.ts';

/** A rollout that ends at once with a given result, which is all that a regrade reads of it. */
export async function rollout({ sealed }: { readonly sealed: RolloutResult }): Promise<RolloutResult> {
  return sealed;
}
