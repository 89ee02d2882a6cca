import { type FlaggedShare, type RisingTrick, tricks } from '../contracts/flags.ts';

/** The number of last rollouts that are compared with those before, of which there have to be as many. */
const recentRollouts = 64;
/** The least number of flagged rollouts among them. Fewer may be chance. */
const leastFlagged = 8;
/** The factor by which a share has to be larger than before. */
const factor = 2;

/** Adds the rollouts of a group, and drops the oldest groups that the last rollouts do not need. */
export function withRecent(recent: readonly FlaggedShare[], added: FlaggedShare): readonly FlaggedShare[] {
  const all = [...recent, added];
  let left = sumOf(all);
  while (left - (all[0]?.rollouts ?? 0) >= recentRollouts) left -= all.shift()?.rollouts ?? 0;
  return all;
}

/**
 * Returns the tricks whose share among the last rollouts of a run is at least twice that among those before: the policy may be
 * learning them. `all` counts the whole run.
 */
export function risingTricks(recent: readonly FlaggedShare[], all: FlaggedShare): readonly RisingTrick[] {
  const rollouts = sumOf(recent);
  const rolloutsBefore = all.rollouts - rollouts;
  if (rollouts < recentRollouts || rolloutsBefore < recentRollouts) return [];
  return tricks.flatMap((trick) => {
    const flagged = recent.reduce((sum, group) => sum + (group.tricks[trick] ?? 0), 0);
    const flaggedBefore = (all.tricks[trick] ?? 0) - flagged;
    const isRising = flagged >= leastFlagged && flagged * rolloutsBefore >= factor * flaggedBefore * rollouts;
    return isRising ? [{ trick, flagged, rollouts, flaggedBefore, rolloutsBefore }] : [];
  });
}

/** Formats a trick whose share rises as a warning for people. */
export const risingText = ({ trick, flagged, rollouts, flaggedBefore, rolloutsBefore }: RisingTrick): string =>
  `the policy may be learning a trick: ${flagged} of the last ${rollouts} rollouts are flagged for ${trick}, and ${flaggedBefore} of the ${rolloutsBefore} before were; read some of them, and set onFlag`;

const sumOf = (groups: readonly FlaggedShare[]): number => groups.reduce((sum, { rollouts }) => sum + rollouts, 0);
