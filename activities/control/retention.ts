import { log } from '@temporalio/activity';
import type { CategoryReport, CollectedElsewhere } from '../../infra/retention/collect.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

export interface RetentionDependencies {
  /** Makes one bounded pass of retention. */
  collect(signal: AbortSignal): Promise<readonly CategoryReport[] | CollectedElsewhere>;
}

/** Creates the activity that removes what nothing needs any more. */
export function createRetentionActivities({
  collect,
}: RetentionDependencies): Pick<ControlActivities, 'collectGarbage'> {
  return {
    collectGarbage: () =>
      atBoundary(async (signal) => {
        const reports = await collect(signal);
        // Another control worker, or `temper gc`, is doing the same.
        if ('holder' in reports) return { categories: [] };
        for (const { category, skipped } of reports) {
          if (skipped !== null) log.warn('a category of retention was skipped', { category, reason: skipped });
        }
        return { categories: reports.filter(({ removed, skipped }) => removed > 0 || skipped !== null) };
      }),
  };
}
