import type { WorkerOptions } from '@temporalio/worker';
import type { CreationActivities } from '../activities/interfaces/host.ts';
import { creationQueue } from '../workflows/contracts/queues.ts';

/** Does nothing: the server gives out its activity tasks at the rate that is allowed. */
const activities: CreationActivities = { allowCreation: async () => undefined };

/**
 * The workers with which a host limits how many sandboxes all hosts create per second. The server keeps the rate of the queue,
 * whichever host takes a task.
 */
export function creationWorkers(perSecond: number | null): readonly WorkerOptions[] {
  if (perSecond === null) return [];
  return [{ taskQueue: creationQueue, activities: { ...activities }, maxTaskQueueActivitiesPerSecond: perSecond }];
}
