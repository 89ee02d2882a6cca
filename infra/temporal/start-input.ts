import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';

/** Reads the input that a workflow was started with, unparsed. Undefined if it had none. */
export async function readStartInput(
  { connection, options: { namespace } }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
): Promise<unknown> {
  const { history } = await connection.workflowService.getWorkflowExecutionHistory({
    namespace,
    execution,
    maximumPageSize: 1,
  });
  const payload = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
  return payload ? defaultPayloadConverter.fromPayload(payload) : undefined;
}
