import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { isClosedStatus } from '../../workflows/algorithms/rollout-end.ts';

/** The successive executions of one workflow under its id. Continue-as-new and a reset start another one of the same chain. */
export interface Chain {
  /** Run id of the first execution, which a workflow knows as its `firstExecutionRunId`. */
  readonly key: string;
  readonly running: boolean;
}

/** Returns the newest chain of this id; null if the server has none. Throws if the server is unreachable. */
export async function newestChain(client: Pick<Client, 'workflow'>, workflowId: string): Promise<Chain | null> {
  try {
    const { raw, runId, status } = await client.workflow.getHandle(workflowId).describe();
    return { key: raw.workflowExecutionInfo?.firstRunId || runId, running: !isClosedStatus(status.name) };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** The start of a chain's first execution, which stays the same for the whole chain. Null if retention has deleted it. */
export async function chainStart(
  client: Pick<Client, 'workflow'>,
  workflowId: string,
  { key }: Chain,
): Promise<Date | null> {
  try {
    return (await client.workflow.getHandle(workflowId, key).describe()).startTime;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
