import type { Ledger } from '../contracts/cost.ts';
import type { GroupReport, GroupSummary } from '../contracts/group.ts';
import type { OnFlag } from '../contracts/on-flag.ts';
import { type Fate, type Outcome, outcomes, type Spread, zeroCount } from '../contracts/outcome.ts';
import type { Training } from '../contracts/run.ts';
import { addRollout, unknownLedger } from './cost.ts';
import { countFlags } from './flags.ts';
import { secondsOf } from './group-durations.ts';
import { meanOrNull } from './mean.ts';
import { countActions, countedReward } from './on-flag.ts';
import { areEqual, reaches } from './rounding.ts';

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
    rewards: rewards.length,
    spread: spreadOf(rewards),
    seconds: secondsOf(report.rollouts),
    ...(flags.rollouts > 0 && { flags }),
    cost: ledger,
  };
}

/** The summary of a group that could not be started: all of its rollouts count as failed. */
export function summaryOfUnstarted(index: number, minVersion: number, rollouts: number): GroupSummary {
  const counts = { ...zeroCount(outcomes), infra: rollouts };
  const known = { runKey: '', index, minVersion, outcomes: counts, cost: unknownLedger(counts) };
  return { ...known, meanReward: null, rewards: 0, spread: 'equal', seconds: 0 };
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

/** The spread of the rewards of a group; rewards that differ by rounding alone are equal. */
export function spreadOf(rewards: readonly number[]): Spread {
  if (!areEqual(rewards)) return 'mixed';
  const [reward = 0.5] = rewards;
  if (reaches(reward, 1)) return 'all-1';
  return reaches(-reward, 0) ? 'all-0' : 'equal';
}

/**
 * The fate of a group in the step that takes it. If its rewards are all equal their advantages are 0, so the group is dropped;
 * `keep` trains on it for its KL penalty. A step whose gradient would be 0 has no batch, and drops it as well.
 */
export function fateInStep(
  spread: Spread,
  zeroVariance: Training['zeroVariance'],
): Extract<Fate, 'trained' | 'zero-variance'> {
  return spread !== 'mixed' && zeroVariance === 'drop' ? 'zero-variance' : 'trained';
}
