import { proxyActivities } from '@temporalio/workflow';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import { timeouts } from './activity-options.ts';
import { controlQueue } from './contracts/queues.ts';
import type { RetentionResult } from './contracts/retention.ts';

const control = proxyActivities<Pick<ControlActivities, 'collectGarbage'>>({
  taskQueue: controlQueue,
  ...timeouts.collect,
});

/** Removes what would grow for ever and nothing needs any more. A schedule starts it each hour. */
export async function retention(): Promise<RetentionResult> {
  return control.collectGarbage();
}
