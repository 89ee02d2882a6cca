import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { newestChain } from '../../infra/temporal/chain.ts';
import { belongsToNamesake } from '../../workflows/contracts/ids.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the control worker's part of the reaper. */
export function createReapActivities(client: Client): Pick<ControlActivities, 'cancelOrphans'> {
  return { cancelOrphans: () => atBoundary(() => cancelOrphans(client)) };
}

/**
 * Cancels groups and rollouts whose run or sweep is closed. They outlive the executions of these by design, and a new one of the
 * same name does not wait for them.
 */
export async function cancelOrphans(
  client: Client,
): Promise<{ readonly groups: readonly string[]; readonly rollouts: readonly string[] }> {
  /** The key of each run or sweep that is running, by name; null if none is. Each is looked up once. */
  const keys = new Map<string, Promise<string | null>>();
  async function runningKey(name: string): Promise<string | null> {
    // Retention may have removed it. An unreachable server proves nothing, so its error is thrown.
    const chain = await newestChain(client, name);
    return chain?.running ? chain.key : null;
  }

  function keyOf(name: string): Promise<string | null> {
    const asked = keys.get(name) ?? runningKey(name);
    keys.set(name, asked);
    return asked;
  }

  async function cancelThose(type: 'group' | 'rollout'): Promise<string[]> {
    const cancelled: string[] = [];
    const query = `WorkflowType="${type}" AND ExecutionStatus="Running" AND ${searchAttributes.run.name} IS NOT NULL`;
    for await (const { workflowId, runId, typedSearchAttributes } of client.workflow.list({ query })) {
      const run = typedSearchAttributes.get(searchAttributes.run);
      if (run === undefined) continue;
      const key = await keyOf(run);
      if (key !== null && !belongsToNamesake(workflowId, run, key)) continue;
      if (await cancelListed(client, workflowId, runId)) cancelled.push(workflowId);
    }
    return cancelled;
  }

  const groups = await cancelThose('group');
  return { groups, rollouts: await cancelThose('rollout') };
}

/**
 * Cancels a workflow of the list; returns false if it is not open. The list may be older than its end, and after a restore of the
 * server's database it may name workflows that the server has never had.
 */
async function cancelListed(client: Client, workflowId: string, runId: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId, runId).cancel();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
