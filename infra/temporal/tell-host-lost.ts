import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { hostLostSignal } from '../../workflows/contracts/messages.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

const toldAtOnce = 16;

/** Tells the rollouts of a host that it was declared lost, so that they begin again elsewhere. Returns their number. */
export async function tellHostLost(client: Pick<Client, 'workflow'>, host: string): Promise<number> {
  const query = `WorkflowType="rollout" AND ExecutionStatus="Running" AND ${searchAttributes.host.name}="${host}"`;
  const limit = pLimit(toldAtOnce);
  const told: Promise<unknown>[] = [];
  for await (const { workflowId, runId } of client.workflow.list({ query })) {
    // A rollout that has ended meanwhile has no need to know.
    told.push(
      limit(() =>
        client.workflow
          .getHandle(workflowId, runId)
          .signal(hostLostSignal, host)
          .catch(() => {}),
      ),
    );
  }
  await Promise.all(told);
  return told.length;
}
