import type { FlagCounts, Trick } from '../contracts/flags.ts';
import type { OnFlag } from '../contracts/on-flag.ts';

/** A rollout with its measured reward, and the tricks that it is flagged for. */
export interface MeasuredRollout {
  readonly reward: number | null;
  readonly flags?: readonly Trick[] | undefined;
}

/** A change that a run or a sweep makes to the reward of a rollout, and the trick for which it does so. */
export interface FlagAction {
  readonly action: 'exclude' | 'zero';
  readonly trick: Trick;
}

/**
 * Returns what happens to the reward of a rollout because of its flags; null if it counts as it was measured, or has none. A reward of
 * 0 always counts: an agent that is left out for a trick could escape its 0 by showing one.
 */
export function actionOn({ reward, flags = [] }: MeasuredRollout, onFlag: OnFlag = {}): FlagAction | null {
  if (reward === null || reward === 0) return null;
  for (const action of ['zero', 'exclude'] as const) {
    const trick = flags.find((one) => onFlag[one] === action);
    if (trick !== undefined) return { action, trick };
  }
  return null;
}

/** Returns the reward with which a rollout counts; null if it has none, or is left out for its flags. */
export function countedReward(rollout: MeasuredRollout, onFlag: OnFlag = {}): number | null {
  const acted = actionOn(rollout, onFlag);
  if (acted === null) return rollout.reward;
  return acted.action === 'zero' ? 0 : null;
}

/** Counts the rollouts whose reward does not count as it was measured, each for one trick. */
export function countActions(
  rollouts: Iterable<MeasuredRollout>,
  onFlag: OnFlag = {},
): Pick<FlagCounts, 'excluded' | 'zeroed'> {
  const counts: Record<FlagAction['action'], Partial<Record<Trick, number>>> = { exclude: {}, zero: {} };
  for (const rollout of rollouts) {
    const acted = actionOn(rollout, onFlag);
    if (acted === null) continue;
    const { action, trick } = acted;
    counts[action] = { ...counts[action], [trick]: (counts[action][trick] ?? 0) + 1 };
  }
  const { exclude: excluded, zero: zeroed } = counts;
  return {
    ...(Object.keys(excluded).length > 0 && { excluded }),
    ...(Object.keys(zeroed).length > 0 && { zeroed }),
  };
}
