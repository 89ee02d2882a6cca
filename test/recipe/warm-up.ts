import type { Datum } from '../../infra/kits/embedded-policy/trainer-core.ts';
import type { Demonstration } from '../../infra/tasks/generated/demonstrations.ts';

/** Returns demonstrations as data for `cross_entropy`, with weights that sum to 1 over the batch. */
export function toWarmUpData(demonstrations: readonly Demonstration[]): readonly Datum[] {
  const total = demonstrations.reduce((sum, { emphasis }) => sum + emphasis.reduce((all, one) => all + one, 0), 0);
  return demonstrations.map(({ tokens, emphasis }) => ({
    inputTokens: tokens.slice(0, -1),
    targetTokens: tokens.slice(1),
    weights: emphasis.slice(1).map((weight) => weight / total),
  }));
}
