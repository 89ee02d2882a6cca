import type { Ledger } from '../contracts/cost.ts';
import type { GroupReport, GroupSummary } from '../contracts/group.ts';
import type { OnFlag } from '../contracts/on-flag.ts';
import { type Fate, type Outcome, outcomes, zeroCount } from '../contracts/outcome.ts';
import type { Training } from '../contracts/run.ts';
import { addRollout } from './cost.ts';
import { countFlags } from './flags.ts';
import { meanOrNull } from './mean.ts';
import { countActions, countedReward } from './on-flag.ts';
import { areEqual } from './rounding.ts';

/** Summarises a group's report for its run. `minVersion` is the oldest version that sampled a token, from which staleness counts. */
export function summariseGroup(report: GroupReport, runKey: string, onFlag: OnFlag = {}): GroupSummary {
  const counts = zeroCount(outcomes);
  const rewards: number[] = [];
  let minVersion = Number.POSITIVE_INFINITY;
  let ledger: Ledger = {};
  for (const rollout of report.rollouts) {
    const { outcome, trace, cost } = rollout;
    const reward = countedReward(rollout, onFlag);
    counts[outcome] += 1;
    ledger = addRollout(ledger, outcome, cost);
    if (reward !== null) rewards.push(reward);
    if (trace?.minVersion !== undefined && trace.minVersion !== null)
      minVersion = Math.min(minVersion, trace.minVersion);
  }
  const flags = {
    ...countFlags(report.rollouts.map((rollout) => rollout.flags)),
    ...countActions(report.rollouts, onFlag),
  };
  return {
    runKey,
    index: report.index,
    minVersion: Number.isFinite(minVersion) ? minVersion : report.admittedVersion,
    outcomes: counts,
    meanReward: meanOrNull(rewards),
    ...(flags.rollouts > 0 && { flags }),
    cost: ledger,
  };
}

/**
 * The fate of a group that has just ended, or null when it can be trained on. Rewards can be compared only among at least
 * two scored rollouts (one, where a group has only one) that are not left out. Otherwise the most frequent cause names the fate.
 */
export function fateOnArrival(
  { outcomes, flags }: Pick<GroupSummary, 'outcomes' | 'flags'>,
  rolloutsPerGroup: number,
): Fate | null {
  const excluded = Object.values(flags?.excluded ?? {}).reduce((sum, count) => sum + count, 0);
  if (outcomes.scored - excluded >= Math.min(2, rolloutsPerGroup)) return null;
  const causes: readonly Exclude<Outcome, 'scored'>[] = ['invalid-task', 'infra', 'stale', 'cancelled'];
  const most = causes.reduce((found, cause) => (outcomes[cause] > outcomes[found] ? cause : found), 'cancelled');
  return excluded > outcomes[most] ? 'excluded' : most;
}

/**
 * The fate of a group in the step that takes it, by the rewards of its scored rollouts. If they are all equal their
 * advantages are 0, so the group is dropped; `keep` trains on it for its KL penalty.
 */
export function fateInStep(
  rewards: readonly number[],
  zeroVariance: Training['zeroVariance'],
): Extract<Fate, 'trained' | 'zero-variance'> {
  return areEqual(rewards) && zeroVariance === 'drop' ? 'zero-variance' : 'trained';
}
