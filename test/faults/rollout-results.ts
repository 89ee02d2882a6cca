import type { Client } from '@temporalio/client';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';

/** Waits for all rollouts of a server's namespace, and returns their results. */
export async function rolloutResults(client: Client): Promise<readonly RolloutResult[]> {
  const results: RolloutResult[] = [];
  for await (const { workflowId } of client.workflow.list({ query: 'WorkflowType="rollout"' })) {
    results.push((await client.workflow.getHandle(workflowId).result()) as RolloutResult);
  }
  return results;
}
