import type { Client, WorkflowHandle } from '@temporalio/client';
import pLimit from 'p-limit';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

const atOnce = 16;

/**
 * Does the work for each open rollout of a host, some at once, and returns the results. All are tried before it throws the
 * failure of one.
 */
export async function forRolloutsOf<Result>(
  client: Pick<Client, 'workflow'>,
  host: string,
  work: (rollout: WorkflowHandle) => Promise<Result>,
): Promise<Result[]> {
  const query = `WorkflowType="rollout" AND ExecutionStatus="Running" AND ${searchAttributes.host.name}="${host}"`;
  const limit = pLimit(atOnce);
  const works: Promise<void>[] = [];
  const results: Result[] = [];
  const failures: unknown[] = [];
  const workOnOne = async (rollout: WorkflowHandle): Promise<void> => {
    try {
      results.push(await work(rollout));
    } catch (error) {
      // It is thrown below: a promise that rejects while the list is still read would end the process.
      failures.push(error);
    }
  };
  for await (const { workflowId, runId } of client.workflow.list({ query })) {
    works.push(limit(() => workOnOne(client.workflow.getHandle(workflowId, runId))));
  }
  await Promise.all(works);
  if (failures.length > 0) throw failures[0];
  return results;
}
