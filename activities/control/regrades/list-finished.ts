import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { RegradeInput } from '../../../workflows/contracts/regrade.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';

/** One execution of a rollout's workflow; the workflow id alone may be used again. */
export const finishedRef = z.object({ workflowId: z.string(), runId: z.string() });
export type FinishedRef = z.output<typeof finishedRef>;

/** The number of listed rollouts whose states are asked for at the same time. */
const askedAtOnce = 50;

/** Lists the rollouts that an input names and that have a result, as the server lists them: the newest first. */
export async function* listFinished(
  client: Client,
  { run, rollouts }: Pick<RegradeInput, 'run' | 'rollouts'>,
): AsyncIterable<FinishedRef> {
  if (rollouts !== undefined) {
    // An input names no more of them than are asked for at the same time.
    yield* await Promise.all(rollouts.map((id) => finishedNamed(client, id)));
    return;
  }
  const listed = 'WorkflowType="rollout" AND ExecutionStatus IN ("Completed", "Running")';
  const runFilter = run === undefined ? '' : ` AND ${searchAttributes.run.name}="${run.replaceAll('"', '\\"')}"`;
  let found = 0;
  for await (const some of inParts(client.workflow.list({ query: `${listed}${runFilter}` }), askedAtOnce)) {
    const states = await Promise.all(some.map((one) => hasCompleted(client, one)));
    const completed = some.filter((_, position) => states[position]);
    found += completed.length;
    for (const { workflowId, runId } of completed) yield { workflowId, runId };
  }
  if (found === 0) {
    throw refused(
      `run: expected a run with rollouts that have ended, got ${run ?? 'none'}; \`temper status\` lists the runs`,
    );
  }
}

/** Throws `InvalidInput` if a regrade has no rollouts to grade, or if one of those that it names has no result. */
export async function requireFinished(client: Client, input: Pick<RegradeInput, 'run' | 'rollouts'>): Promise<void> {
  // Of a run, the first rollout suffices; rollouts that are named are all looked up.
  for await (const _ of listFinished(client, input)) if (input.rollouts === undefined) return;
}

/** Divides a list into parts of a size; the last one may be shorter. */
async function* inParts<Item>(list: AsyncIterable<Item>, size: number): AsyncIterable<readonly Item[]> {
  let part: Item[] = [];
  for await (const item of list) {
    part.push(item);
    if (part.length < size) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

/** Whether a listed execution has a result. The list lags behind, so the server is asked about an execution that it shows as running. */
async function hasCompleted(client: Client, { workflowId, runId, status }: WorkflowExecutionInfo): Promise<boolean> {
  if (status.name === 'COMPLETED') return true;
  return (await describe(client, workflowId, runId))?.status.name === 'COMPLETED';
}

async function finishedNamed(client: Client, id: string): Promise<FinishedRef> {
  const description = await describe(client, id);
  if (description?.type !== 'rollout') {
    const got = description === null ? 'which this server does not know' : `which is a ${description.type}`;
    throw refused(`rollouts: expected workflow ids of rollouts, got ${id}, ${got}`);
  }
  const { workflowId, runId, status } = description;
  if (status.name === 'COMPLETED') return { workflowId, runId };
  throw refused(`rollouts: expected rollouts that have a result, got ${id}, which is ${status.name.toLowerCase()}`);
}

/** Returns what the server knows of an execution, of the newest one without a run id; null if it has none. */
async function describe(client: Client, id: string, runId?: string): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.workflow.getHandle(id, runId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

const refused = (message: string): TemperFailure => new TemperFailure('InvalidInput', `regrade: ${message}`);
