import type { Client } from '@temporalio/client';
import { queueKinds } from './pollers.ts';

/** Returns about how many activities wait in a task queue. */
export async function backlogOf(client: Pick<Client, 'connection' | 'options'>, queue: string): Promise<number> {
  const { stats } = await client.connection.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: queueKinds.activity,
    reportStats: true,
  });
  return Number(stats?.approximateBacklogCount ?? 0);
}
