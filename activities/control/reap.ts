import type { Client } from '@temporalio/client';
import { newestChain } from '../../infra/temporal/chain.ts';
import { isOfNamesake } from '../../workflows/contracts/ids.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Groups outlive their run's executions by design, and rollouts those of their sweep; where that is closed, nobody waits for them. */
export function createReapActivities(client: Client): Pick<ControlActivities, 'cancelOrphans'> {
  return { cancelOrphans: () => atBoundary(() => cancelOrphans(client)) };
}

/** A run that has taken the name of a closed one since does not wait for its groups either. */
export async function cancelOrphans(
  client: Client,
): Promise<{ readonly groups: readonly string[]; readonly rollouts: readonly string[] }> {
  /** Run or sweep → its key; null where none runs under the name. Asked once each. */
  const keys = new Map<string, Promise<string | null>>();
  async function runningKey(name: string): Promise<string | null> {
    // Retention may have taken it; an unreachable server is no answer and throws on.
    const chain = await newestChain(client, name);
    return chain?.running ? chain.key : null;
  }

  async function cancelThose(type: 'group' | 'rollout'): Promise<string[]> {
    const cancelled: string[] = [];
    const query = `WorkflowType="${type}" AND ExecutionStatus="Running" AND ${searchAttributes.run.name} IS NOT NULL`;
    for await (const { workflowId, runId, typedSearchAttributes } of client.workflow.list({ query })) {
      const run = typedSearchAttributes.get(searchAttributes.run);
      if (run === undefined) continue;
      const asked = keys.get(run) ?? runningKey(run);
      keys.set(run, asked);
      const key = await asked;
      if (key !== null && !isOfNamesake(workflowId, run, key)) continue;
      await client.workflow.getHandle(workflowId, runId).cancel();
      cancelled.push(workflowId);
    }
    return cancelled;
  }

  const groups = await cancelThose('group');
  return { groups, rollouts: await cancelThose('rollout') };
}
