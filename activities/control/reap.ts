import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces.ts';

/** Groups outlive their run's executions by design, and rollouts those of their sweep; where that is closed, nobody waits for them. */
export function createReapActivities(client: Client): Pick<ControlActivities, 'cancelOrphans'> {
  async function isClosed(run: string): Promise<boolean> {
    try {
      return (await client.workflow.getHandle(run).describe()).status.name !== 'RUNNING';
    } catch (error) {
      // Retention may have taken the run; an unreachable server is no answer and throws on.
      if (error instanceof WorkflowNotFoundError) return true;
      throw error;
    }
  }

  async function cancelThoseOfClosed(type: 'group' | 'rollout', closed: Map<string, boolean>): Promise<string[]> {
    const cancelled: string[] = [];
    const query = `WorkflowType="${type}" AND ExecutionStatus="Running" AND ${searchAttributes.run.name} IS NOT NULL`;
    for await (const found of client.workflow.list({ query })) {
      const run = found.typedSearchAttributes.get(searchAttributes.run);
      if (run === undefined) continue;
      if (!closed.has(run)) closed.set(run, await isClosed(run));
      if (!closed.get(run)) continue;
      await client.workflow.getHandle(found.workflowId, found.runId).cancel();
      cancelled.push(found.workflowId);
    }
    return cancelled;
  }

  return {
    cancelOrphans: () =>
      atBoundary(async () => {
        const closed = new Map<string, boolean>();
        const groups = await cancelThoseOfClosed('group', closed);
        return { groups, rollouts: await cancelThoseOfClosed('rollout', closed) };
      }),
  };
}
