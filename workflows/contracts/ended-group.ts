import type { Count, Fate } from './outcome.ts';

/** A group that has ended, as the statistics of durations count it. */
export interface EndedGroup {
  readonly fate: Fate;
  /** The time of its slowest rollout, without the wait for a slot. */
  readonly seconds: number;
  /** The mean of the rewards that count; null if none does. */
  readonly meanReward: number | null;
  /** The number of rewards that count. */
  readonly rewards: number;
}

/** A group that has just got its fate. */
export interface SettledGroup extends EndedGroup {
  /** The quarter of its duration among the groups that ended last, 1 for the fastest; null while these are less than eight. */
  readonly quarter: number | null;
}

/** A quarter of the groups that have ended, by their durations. */
export interface DurationQuarter {
  readonly groups: number;
  /** The longest duration of its groups. */
  readonly seconds: number;
  readonly fates: Partial<Count<Fate>>;
  /** The share of its groups that steps took. */
  readonly inSteps: number;
  /** The mean over its scored rollouts; null if there are none. */
  readonly meanReward: number | null;
}

/** The fates and rewards of groups by how long they took. */
export interface GroupDurations {
  readonly groups: number;
  /** The quarters from the fastest to the slowest; none for less than eight groups. */
  readonly quarters: readonly DurationQuarter[];
  /** The mean over all scored rollouts; null if there are none. */
  readonly scoredReward: number | null;
  /** The mean over the scored rollouts of groups that steps took; null if there are none. */
  readonly stepReward: number | null;
}
