import { fateInStep } from '../algorithms/group-report.ts';
import type { EndedGroup } from '../contracts/ended-group.ts';
import type { GroupSummary } from '../contracts/group.ts';
import type { Fate } from '../contracts/outcome.ts';
import type { Training } from '../contracts/run.ts';
import type { RecentGroup } from '../contracts/run-state.ts';

/** The number of groups that are kept: a dozen steps of eight groups, in 4 KB. */
const kept = 96;

/** The last groups of a run that have ended, in the order in which they ended. */
export interface RecentGroups {
  /** The groups that have a fate. */
  readonly settled: readonly EndedGroup[];
  /** All, as continue-as-new carries them. */
  readonly carried: readonly RecentGroup[];
  /** Adds a group that has ended, which has no fate yet. */
  add(summary: GroupSummary): void;
  /** Gives groups their fate; null if it depends on their rewards. */
  settle(groups: readonly number[], fate: Fate | null): void;
}

export function createRecentGroups(
  { zeroVariance }: Pick<Training, 'zeroVariance'>,
  carried: readonly RecentGroup[],
): RecentGroups {
  let recent = carried;
  return {
    get settled() {
      return recent.flatMap(([, seconds, fate, isSettled, meanReward, rewards]) =>
        isSettled === 1 ? [{ fate, seconds, meanReward, rewards }] : [],
      );
    },
    get carried() {
      return recent;
    },
    add({ index, seconds, spread, meanReward, rewards }) {
      const fate = fateInStep(spread, zeroVariance);
      const rounded = meanReward === null ? null : round(meanReward, 1_000);
      recent = [...recent, [index, round(seconds, 10), fate, 0, rounded, rewards] as const].slice(-kept);
    },
    settle(groups, fate) {
      const settled = new Set(groups);
      recent = recent.map((group) => {
        const [index, seconds, fateInItsStep, , meanReward, rewards] = group;
        return settled.has(index) ? [index, seconds, fate ?? fateInItsStep, 1, meanReward, rewards] : group;
      });
    },
  };
}

const round = (value: number, parts: number): number => Math.round(value * parts) / parts;
