import type { Client } from '@temporalio/client';

/** Returns the sizes of all values in the history of a workflow. */
export async function valueSizes(client: Client, workflowId: string, runId?: string): Promise<readonly number[]> {
  return payloadSizes((await client.workflow.getHandle(workflowId, runId).fetchHistory()).events);
}

export function payloadSizes(value: unknown): readonly number[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('data' in value && value.data instanceof Uint8Array) return [value.data.byteLength];
  return Object.values(value).flatMap(payloadSizes);
}
