import type { DurationQuarter, EndedGroup, GroupDurations } from '../contracts/ended-group.ts';
import type { RolloutReport } from '../contracts/group.ts';
import type { Fate } from '../contracts/outcome.ts';
import { weightedMean } from './mean.ts';

/** The smallest number of groups that is divided into quarters. */
const fewest = 8;
/** The difference of the shares that steps took, from which on the slowest quarter fares differently. */
const leastDifference = 0.1;
/** The same difference in standard errors, so that chance gives few warnings: one in some hundred looks. */
const leastErrors = 3;

/** Returns how long a group took: the time of its slowest rollout, without the wait for a slot. */
export const secondsOf = (rollouts: readonly Pick<RolloutReport, 'stageSeconds'>[]): number =>
  Math.max(0, ...rollouts.map(({ stageSeconds }) => workSeconds(stageSeconds)));

const workSeconds = ({ placeRollout: _, ...worked }: RolloutReport['stageSeconds']): number =>
  Object.values(worked).reduce((sum, seconds) => sum + seconds, 0);

/** Counts the fates and rewards of groups by quarters of their durations. */
export function groupDurations(groups: readonly EndedGroup[]): GroupDurations {
  const sorted = groups.toSorted((a, b) => a.seconds - b.seconds);
  const quarters = [0, 1, 2, 3].map((quarter) =>
    sorted.slice(Math.round((quarter * sorted.length) / 4), Math.round(((quarter + 1) * sorted.length) / 4)),
  );
  return {
    groups: groups.length,
    quarters: groups.length < fewest ? [] : quarters.map(quarterOf),
    scoredReward: rewardOf(groups),
    stepReward: rewardOf(groups.filter(isInStep)),
  };
}

/** Returns the quarter in which a duration is among these, which include it: 1 for the fastest; null if they are too few. */
export function quarterAmong(seconds: number, all: readonly number[]): number | null {
  if (all.length < fewest) return null;
  const shorter = all.filter((other) => other < seconds).length;
  const equal = all.filter((other) => other === seconds).length;
  return 1 + Math.floor((4 * (shorter + equal / 2)) / all.length);
}

function quarterOf(groups: readonly EndedGroup[]): DurationQuarter {
  return {
    groups: groups.length,
    seconds: groups.at(-1)?.seconds ?? 0,
    fates: countFates(groups),
    inSteps: groups.filter(isInStep).length / groups.length,
    meanReward: rewardOf(groups),
  };
}

/** Counts groups by their fates. */
export function countFates(groups: readonly Pick<EndedGroup, 'fate'>[]): Partial<Record<Fate, number>> {
  const counts: Partial<Record<Fate, number>> = {};
  for (const { fate } of groups) counts[fate] = (counts[fate] ?? 0) + 1;
  return counts;
}

const isInStep = ({ fate }: Pick<EndedGroup, 'fate'>): boolean =>
  fate === 'trained' || fate === 'zero-variance' || fate === 'skipped';

function rewardOf(groups: readonly EndedGroup[]): number | null {
  const means = groups.flatMap(({ meanReward, rewards }) =>
    meanReward === null || rewards === 0 ? [] : [[meanReward, rewards] as const],
  );
  return means.length === 0 ? null : weightedMean(means);
}

/**
 * Warns for people if steps took another share of the slowest quarter than of the other groups: by ten points or more, and by
 * three standard errors of the difference of two shares. Returns null if they did not.
 */
export function slowQuarterWarning({ groups, quarters }: GroupDurations): string | null {
  const slow = quarters.at(-1);
  if (slow === undefined) return null;
  const others = quarters.slice(0, -1);
  const otherGroups = others.reduce((sum, quarter) => sum + quarter.groups, 0);
  const otherShare = weightedMean(others.map(({ inSteps, groups: count }) => [inSteps, count]));
  const all = weightedMean(quarters.map(({ inSteps, groups: count }) => [inSteps, count]));
  const difference = Math.abs(slow.inSteps - otherShare);
  const error = Math.sqrt(all * (1 - all) * (1 / slow.groups + 1 / otherGroups));
  if (difference < leastDifference || difference < leastErrors * error) return null;
  return (
    `steps took ${percent(slow.inSteps)} of the slowest quarter of ${groups} groups and ${percent(otherShare)} of the others, ` +
    `so that tasks that take long are trained ${slow.inSteps < otherShare ? 'less' : 'more'} often than they are started; ` +
    'look at the fates of these groups, and at onStale'
  );
}

/** Describes the quarters and the rewards for people, a line each. */
export function durationLines(durations: GroupDurations): readonly string[] {
  const { groups, quarters, scoredReward, stepReward } = durations;
  if (quarters.length === 0) return [];
  const warning = slowQuarterWarning(durations);
  const rewards = `${scoredReward?.toFixed(2) ?? 'none'} over all scored rollouts, ${stepReward?.toFixed(2) ?? 'none'} over those in steps`;
  return [
    `mean reward of the last ${groups} groups: ${rewards}`,
    `their fates by duration: ${quarters.map(quarterText).join('; ')}`,
    ...(warning === null ? [] : [`warning: ${warning}`]),
  ];
}

const quarterText = ({ seconds, fates }: DurationQuarter): string =>
  `up to ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s ${Object.entries(fates)
    .map(([fate, count]) => `${fate} ${count}`)
    .join(', ')}`;

const percent = (share: number): string => `${Math.round(100 * share)} %`;
