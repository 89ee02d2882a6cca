import { shortKey } from '../../../workflows/contracts/ids.ts';
import { ownerKeyOf, rolloutFolder } from '../../store/rollout-records.ts';
import type { Category, RetentionContext } from '../category.ts';
import { objectEntry } from '../objects.ts';

/** The records of rollouts, and of regrades beside them. What they refer to is in the outcomes. */
export const rollouts: Category = {
  name: 'records of rollouts',
  keeps:
    'everything; `--older-than` removes the records of rollouts that ended before, but for those of open runs and sweeps, and those that an open regrade grades',
  folder: rolloutFolder,
  where: () => [],
  async *entries(context) {
    const { objects, cutoffMs } = context;
    if (cutoffMs === null) return;
    const isNeeded = await neededRecords(context);
    for await (const found of objects.list(rolloutFolder)) {
      if (found.changedAtMs >= cutoffMs || isNeeded(found.key)) continue;
      const name = found.key.slice(rolloutFolder.length + 1);
      yield objectEntry(context, [found], { name, expired: 'ended before the given age' });
    }
  },
};

/** Returns what tells whether an open run, sweep or regrade needs the record of a rollout, or that of a regrade beside it. */
export async function neededRecords({
  knowledge,
  objects,
}: Pick<RetentionContext, 'knowledge' | 'objects'>): Promise<(key: string) => boolean> {
  const planned = await knowledge.plannedRecords(objects);
  const open = new Set(Array.from(await knowledge.openKeys(), shortKey));
  return (key) => open.has(ownerKeyOf(key)) || planned.has(key.replace(/\.regrade-.*/, '.json'));
}
