import type { Client } from '@temporalio/client';

/** The server's number for the kind of task queue that holds activities. */
const activityQueue = 2;

/** Returns about how many activities wait in a task queue. */
export async function backlogOf(client: Pick<Client, 'connection' | 'options'>, queue: string): Promise<number> {
  const { stats } = await client.connection.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: activityQueue,
    reportStats: true,
  });
  return Number(stats?.approximateBacklogCount ?? 0);
}
