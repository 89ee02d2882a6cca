import type { Client } from '@temporalio/client';
import { queueKinds } from './pollers.ts';

/**
 * Returns about how many activities wait in a task queue. The server's count may trail behind by seconds, in both directions, so
 * nothing may depend on it that a wrong count would break: placement takes it for a hint that at worst lets one rollout pass
 * another, or lets a free slot wait for a few seconds.
 */
export async function backlogOf(client: Pick<Client, 'connection' | 'options'>, queue: string): Promise<number> {
  const { stats } = await client.connection.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: queueKinds.activity,
    reportStats: true,
  });
  return Number(stats?.approximateBacklogCount ?? 0);
}
