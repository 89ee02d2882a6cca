import { countFates, groupDurations, secondsOf } from '../../workflows/algorithms/group-durations.ts';
import { meanOf, meanOrNull } from '../../workflows/algorithms/mean.ts';
import type { EndedGroup, GroupDurations } from '../../workflows/contracts/ended-group.ts';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import type { Count, Fate } from '../../workflows/contracts/outcome.ts';

/** The groups of one task. */
export interface TaskFates {
  readonly task: string;
  readonly groups: number;
  readonly fates: Partial<Count<Fate>>;
  /** The mean duration of its groups, each without the wait for a slot. */
  readonly seconds: number;
  readonly meanReward: number | null;
}

export interface GroupFates {
  /** The groups of the whole run. */
  readonly durations: GroupDurations;
  /** The tasks whose groups took longest first. */
  readonly tasks: readonly TaskFates[];
}

/** Counts the groups that have a fate by how long they took, and by their tasks. */
export function groupFates(groups: readonly GroupReport[], fates: ReadonlyMap<number, Fate>): GroupFates {
  const ended = groups.flatMap((group) => {
    const fate = fates.get(group.index);
    return fate === undefined ? [] : [{ task: group.task, ...endedGroup(group, fate) }];
  });
  const byTask = [...Map.groupBy(ended, ({ task }) => task)].map(([task, own]): TaskFates => {
    const { scoredReward } = groupDurations(own);
    const seconds = meanOf(own.map((group) => group.seconds));
    return { task, groups: own.length, fates: countFates(own), seconds, meanReward: scoredReward };
  });
  return { durations: groupDurations(ended), tasks: byTask.sort((a, b) => b.seconds - a.seconds) };
}

function endedGroup({ rollouts }: GroupReport, fate: Fate): EndedGroup {
  const rewards = rollouts.flatMap(({ reward }) => reward ?? []);
  return { fate, seconds: secondsOf(rollouts), meanReward: meanOrNull(rewards), rewards: rewards.length };
}
