import { quarterAmong } from '../algorithms/group-durations.ts';
import { fateInStep } from '../algorithms/group-report.ts';
import type { EndedGroup, SettledGroup } from '../contracts/ended-group.ts';
import type { GroupSummary } from '../contracts/group.ts';
import type { Fate } from '../contracts/outcome.ts';
import type { Training } from '../contracts/run.ts';
import type { RecentGroup } from '../contracts/run-state.ts';

/** The number of groups with a fate that are kept: a dozen steps of eight groups, in 4 KB. */
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

/** Creates the last groups of a run. `onSettled` receives each group once, when it has its fate. */
export function createRecentGroups(
  { zeroVariance }: Pick<Training, 'zeroVariance'>,
  carried: readonly RecentGroup[],
  onSettled: (group: SettledGroup) => void,
): RecentGroups {
  let recent = carried;
  return {
    get settled() {
      return recent.flatMap((group) => (isSettled(group) ? [endedGroup(group)] : []));
    },
    get carried() {
      return recent;
    },
    add({ index, seconds, spread, meanReward, rewards }) {
      const fate = fateInStep(spread, zeroVariance);
      const rounded = meanReward === null ? null : round(meanReward, 1_000);
      recent = [...recent, [index, round(seconds, 10), fate, 0, rounded, rewards]];
    },
    settle(groups, fate) {
      const settling = new Set(groups);
      const all = recent.map(([, seconds]) => seconds);
      recent = recent.map((group) => {
        const [index, seconds, fateInItsStep, , meanReward, rewards] = group;
        if (!settling.has(index)) return group;
        const settled: RecentGroup = [index, seconds, fate ?? fateInItsStep, 1, meanReward, rewards];
        if (!isSettled(group)) onSettled({ ...endedGroup(settled), quarter: quarterAmong(seconds, all) });
        return settled;
      });
      let surplus = recent.filter(isSettled).length - kept;
      recent = recent.filter((group) => {
        if (surplus <= 0 || !isSettled(group)) return true;
        surplus -= 1;
        return false;
      });
    },
  };
}

const isSettled = ([, , , settled]: RecentGroup): boolean => settled === 1;

const endedGroup = ([, seconds, fate, , meanReward, rewards]: RecentGroup): EndedGroup => ({
  fate,
  seconds,
  meanReward,
  rewards,
});

const round = (value: number, parts: number): number => Math.round(value * parts) / parts;
