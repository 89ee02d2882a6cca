import type { Client } from '@temporalio/client';

/** A digest in a text: 64 hexadecimal digits that are not part of a longer number. */
const digest = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/**
 * Returns whatever in a text may be the digest of a blob. References are found by their looks and not by the schemas of those
 * that write them, so that a new field with a reference cannot be forgotten here; at worst a blob stays that nothing needs.
 */
export function digestsIn(text: string): ReadonlySet<string> {
  return new Set(text.match(digest)?.map(copyOf));
}

/** Copies a part of a text. Node's own parts of a text keep the whole of it in memory. */
const copyOf = (part: string): string => Buffer.from(part, 'latin1').toString('latin1');

/** Returns the digests that the history of one execution names: in its input, its activities' results and its own result. */
export async function digestsInHistory(
  client: Client,
  { workflowId, runId }: { readonly workflowId: string; readonly runId: string },
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  for (const text of textsIn(history)) for (const one of digestsIn(text)) found.add(one);
  return found;
}

/** Returns the texts in the input of one execution, which its first event holds. */
export async function inputOf(
  client: Client,
  execution: { readonly workflowId: string; readonly runId: string },
): Promise<string> {
  const { namespace } = client.options;
  const { workflowId, runId } = execution;
  const request = { namespace, execution: { workflowId, runId }, maximumPageSize: 1 };
  const { history } = await client.workflowService.getWorkflowExecutionHistory(request);
  return [...textsIn(history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input)].join('\n');
}

/** Yields the texts of a message of Temporal's API; its payloads are bytes. */
function* textsIn(value: unknown): Iterable<string> {
  if (typeof value === 'string') yield value;
  else if (value instanceof Uint8Array)
    yield Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1');
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) yield* textsIn(part);
}
