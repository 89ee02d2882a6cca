import type { Client, WorkflowHandle } from '@temporalio/client';
import { controlQueue } from '../../../../workflows/contracts/ids.ts';
import type { RolloutRequest } from '../../../../workflows/contracts/rollout.ts';
import { searchAttributes } from '../../../../workflows/contracts/search-attributes.ts';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import type { rollout } from '../../../../workflows/index.ts';
import { workflowEnd } from '../../follow/workflow-failure.ts';
import { type RolloutRow, rowOf, rowWithout } from './row.ts';

export type RolloutHandle = WorkflowHandle<typeof rollout>;
/** Everything but the task, with the agent named. */
export type RolloutOf = Omit<RolloutRequest, 'task'> & { readonly agent: string };

export function startRollout(
  client: Client,
  workflowId: string,
  task: ResolvedTask,
  request: RolloutOf,
): Promise<RolloutHandle> {
  const { id } = task.task;
  return client.workflow.start<typeof rollout>('rollout', {
    workflowId,
    taskQueue: controlQueue,
    args: [{ ...request, task }],
    typedSearchAttributes: [
      { key: searchAttributes.task, value: id },
      { key: searchAttributes.agent, value: request.agent },
    ],
    staticSummary: `${request.agent} at ${id}`,
  });
}

/** How a rollout ended. An abort cancels it and waits for its end. */
export async function followRollout(
  handle: RolloutHandle,
  { task, agent }: { readonly task: string; readonly agent: string },
  signal: AbortSignal,
): Promise<RolloutRow> {
  const cancel = (): void => {
    // It may have ended in this moment; its result says what became of it.
    handle.cancel().catch(() => undefined);
  };
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return rowOf(await handle.result());
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    const outcome = end.kind === 'cancelled' || end.kind === 'terminated' ? 'cancelled' : null;
    return rowWithout(handle.workflowId, task, agent, outcome, { type: end.kind, message: end.message });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
