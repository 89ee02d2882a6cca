import { type Category, dayMs } from '../category.ts';
import { nameOf, objectEntry } from '../objects.ts';

const keptMs = 30 * dayMs;

/** The cache of verdicts. What it loses costs one evaluation. */
export const cachedVerdicts: Category = {
  name: 'cached verdicts',
  keeps: 'verdicts that were cached or reused in the last 30 days; outcomes have their own verdicts, which stay',
  refersToBlobs: true,
  folder: 'verdicts',
  where: () => [],
  async *entries(context) {
    for await (const found of context.objects.list('verdicts')) {
      const expired = context.nowMs - found.changedAtMs <= keptMs ? null : 'unused for 30 days';
      yield objectEntry(context, [found], { name: nameOf(found.key), expired });
    }
  },
};
