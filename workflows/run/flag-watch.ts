import { addFlags, noFlags } from '../algorithms/flags.ts';
import { risingTricks, withRecent } from '../algorithms/rising-tricks.ts';
import type { FlagCounts, FlaggedShare, RisingTrick } from '../contracts/flags.ts';
import type { GroupSummary } from '../contracts/group.ts';
import { outcomes } from '../contracts/outcome.ts';

/** Counts the flags of a run, and watches which tricks become more frequent. */
export interface FlagWatch {
  readonly counts: FlagCounts;
  /** The flags of the last groups, newest last. */
  readonly recent: readonly FlaggedShare[];
  /** Adds a group that has ended. */
  add(summary: Pick<GroupSummary, 'flags' | 'outcomes'>): void;
  /** Returns the tricks whose share among the last rollouts is larger than before, given the number of all rollouts. */
  rising(rollouts: number): readonly RisingTrick[];
}

export function createFlagWatch(
  carried: { readonly flags: FlagCounts; readonly recentFlags: readonly FlaggedShare[] } | null,
): FlagWatch {
  let counts = carried?.flags ?? noFlags;
  let recent = carried?.recentFlags ?? [];
  return {
    get counts() {
      return counts;
    },
    get recent() {
      return recent;
    },
    add(summary) {
      if (summary.flags !== undefined) counts = addFlags(counts, summary.flags);
      const rollouts = outcomes.reduce((sum, outcome) => sum + summary.outcomes[outcome], 0);
      recent = withRecent(recent, { rollouts, tricks: summary.flags?.tricks ?? {} });
    },
    rising: (rollouts) => risingTricks(recent, { rollouts, tricks: counts.tricks }),
  };
}
