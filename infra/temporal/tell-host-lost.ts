import { type Client, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import pLimit from 'p-limit';
import { hostLostSignal } from '../../workflows/contracts/messages.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

const toldAtOnce = 16;

/**
 * Tells the rollouts of a host that it was declared lost, so that they begin again elsewhere, and returns their number. All are
 * tried before it throws the failure of one. To tell a rollout twice does no harm.
 */
export async function tellHostLost(client: Pick<Client, 'workflow'>, host: string): Promise<number> {
  const query = `WorkflowType="rollout" AND ExecutionStatus="Running" AND ${searchAttributes.host.name}="${host}"`;
  const limit = pLimit(toldAtOnce);
  const told: Promise<void>[] = [];
  const failures: unknown[] = [];
  let open = 0;
  const tellOne = async (rollout: WorkflowHandle): Promise<void> => {
    try {
      if (await tell(rollout, host)) open += 1;
    } catch (error) {
      // It is thrown below: a promise that rejects while the list is still read would end the process.
      failures.push(error);
    }
  };
  for await (const { workflowId, runId } of client.workflow.list({ query })) {
    told.push(limit(() => tellOne(client.workflow.getHandle(workflowId, runId))));
  }
  await Promise.all(told);
  if (failures.length > 0) throw failures[0];
  return open;
}

/** Returns whether the rollout was still open. One that has ended meanwhile has no need to know. */
async function tell(rollout: WorkflowHandle, host: string): Promise<boolean> {
  try {
    await rollout.signal(hostLostSignal, host);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
