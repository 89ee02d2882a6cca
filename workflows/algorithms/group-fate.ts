import type { GroupSummary } from '../contracts/group.ts';
import type { Fate, Outcome } from '../contracts/outcome.ts';

/**
 * The fate of a group that has just ended, or null when it can be trained on: rewards can be compared only among at least
 * two scored rollouts (one, where a group has only one). Otherwise the most frequent cause names the fate.
 */
export function fateOnArrival({ outcomes }: GroupSummary, rolloutsPerGroup: number): Fate | null {
  if (outcomes.scored >= Math.min(2, rolloutsPerGroup)) return null;
  const causes: readonly Exclude<Outcome, 'scored'>[] = ['invalid-task', 'infra', 'stale', 'cancelled'];
  return causes.reduce((most, cause) => (outcomes[cause] > outcomes[most] ? cause : most), 'cancelled');
}
