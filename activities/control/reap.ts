import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces.ts';

/** A group outlives its run by design; one whose run is closed has nobody to report to. */
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

  return {
    cancelOrphans: () =>
      atBoundary(async () => {
        const closed = new Map<string, boolean>();
        const cancelled: string[] = [];
        const query = `WorkflowType="group" AND ExecutionStatus="Running" AND ${searchAttributes.run.name} IS NOT NULL`;
        for await (const group of client.workflow.list({ query })) {
          const run = group.typedSearchAttributes.get(searchAttributes.run);
          if (run === undefined) continue;
          if (!closed.has(run)) closed.set(run, await isClosed(run));
          if (!closed.get(run)) continue;
          await client.workflow.getHandle(group.workflowId, group.runId).cancel();
          cancelled.push(group.workflowId);
        }
        return { groups: cancelled };
      }),
  };
}
