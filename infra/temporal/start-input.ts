import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';

/** What a workflow was started with, as it was given: a result does not repeat it. Undefined when it was given nothing. */
export async function readStartInput(
  { connection, options: { namespace } }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
): Promise<unknown> {
  const { history } = await connection.workflowService.getWorkflowExecutionHistory({
    ...{ namespace, execution },
    maximumPageSize: 1,
  });
  const payload = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
  return payload ? defaultPayloadConverter.fromPayload(payload) : undefined;
}
