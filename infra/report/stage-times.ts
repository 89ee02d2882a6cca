import type { GroupReport } from '../../workflows/contracts/group.ts';
import { stages } from '../../workflows/contracts/rollout.ts';
import type { StageTiming } from './data.ts';

/** How long each stage took, over all rollouts that went through it, in the order of the stages. */
export function timeStages(groups: readonly Pick<GroupReport, 'rollouts'>[]): StageTiming[] {
  const rollouts = groups.flatMap((group) => group.rollouts);
  return stages.flatMap((stage) => {
    const seconds = rollouts.flatMap(({ stageSeconds }) => stageSeconds[stage] ?? []).sort((a, b) => a - b);
    const max = seconds.at(-1);
    if (max === undefined) return [];
    return [{ stage, count: seconds.length, median: quantile(seconds, 0.5), p90: quantile(seconds, 0.9), max }];
  });
}

/** Nearest rank: always one of the values. */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
