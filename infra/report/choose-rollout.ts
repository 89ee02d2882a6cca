import type { GroupReport, RolloutReport } from '../../workflows/contracts/group.ts';

/** How far back a rollout may lie that shows what the run has learnt. */
const lastGroups = 24;

/**
 * The rollout that shows most: a late one that was scored, best reward first, then with the most turns, then the newest.
 * Null when none was scored.
 */
export function chooseRollout(groups: readonly GroupReport[]): RolloutReport | null {
  const late = groups
    .toSorted((a, b) => b.index - a.index)
    .slice(0, lastGroups)
    .flatMap(({ rollouts }) => rollouts)
    .filter(({ outcome, trace }) => outcome === 'scored' && trace !== null);
  const turns = (report: RolloutReport): number => report.trace?.turns ?? 0;
  return late.toSorted((a, b) => (b.reward ?? 0) - (a.reward ?? 0) || turns(b) - turns(a))[0] ?? null;
}
