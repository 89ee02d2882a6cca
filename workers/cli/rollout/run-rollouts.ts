import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { controlQueue } from '../../../workflows/contracts/ids.ts';
import type { RolloutRequest } from '../../../workflows/contracts/rollout.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import type { ResolvedTask } from '../../../workflows/contracts/task.ts';
import type { rollout } from '../../../workflows/index.ts';
import { workflowEnd } from '../workflow-failure.ts';
import { type RolloutRow, rowOf, rowWithout } from './row.ts';

export interface RolloutHooks {
  readonly concurrency: number;
  started(workflowId: string): void;
  finish(row: RolloutRow): void;
}

/** One rollout per task, so many at once. An abort cancels those in flight and waits for their ends. */
export async function runRollouts(
  client: Client,
  tasks: readonly ResolvedTask[],
  request: Omit<RolloutRequest, 'task'> & { readonly agent: string },
  hooks: RolloutHooks,
  signal: AbortSignal,
): Promise<RolloutRow[]> {
  const rows: RolloutRow[] = [];
  const queue = tasks[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const task of queue) {
      if (signal.aborted) return;
      const row = await runOne(client, task, request, hooks, signal);
      hooks.finish(row);
      rows.push(row);
    }
  };
  await Promise.all(Array.from({ length: Math.min(hooks.concurrency, tasks.length) }, worker));
  return rows.sort((a, b) => a.task.localeCompare(b.task));
}

async function runOne(
  client: Client,
  task: ResolvedTask,
  request: Omit<RolloutRequest, 'task'> & { readonly agent: string },
  hooks: RolloutHooks,
  signal: AbortSignal,
): Promise<RolloutRow> {
  const { id } = task.task;
  const workflowId = `rollout/${id}/${randomUUID().slice(0, 8)}`;
  const handle = await client.workflow.start<typeof rollout>('rollout', {
    workflowId,
    taskQueue: controlQueue,
    args: [{ ...request, task }],
    typedSearchAttributes: [
      { key: searchAttributes.task, value: id },
      { key: searchAttributes.agent, value: request.agent },
    ],
    staticSummary: `${request.agent} at ${id}`,
  });
  hooks.started(workflowId);
  const cancel = (): void => {
    // It may have ended in this moment; its result says what became of it.
    handle.cancel().catch(() => undefined);
  };
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return rowOf(await handle.result());
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    const outcome = end.kind === 'cancelled' || end.kind === 'terminated' ? 'cancelled' : null;
    return rowWithout(workflowId, id, request.agent, outcome, { type: end.kind, message: end.message });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
