import { randomUUID } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import pLimit from 'p-limit';
import { controlQueue } from '../../../../workflows/contracts/queues.ts';
import type { RolloutRequest } from '../../../../workflows/contracts/rollout.ts';
import { searchAttributes, shownText } from '../../../../workflows/contracts/search-attributes.ts';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import type { rollout } from '../../../../workflows/index.ts';
import { cancelWhenAborted } from '../../follow/cancel-when-aborted.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import { type RolloutRow, rowOf, rowWithoutResult } from './rollout-row.ts';

/** Input of the rollouts of one command: everything but the task. */
export type SharedRequest = Omit<RolloutRequest, 'task'> & { readonly agent: string };

export interface RunRollouts {
  readonly request: SharedRequest;
  /** Rollouts that run at once. */
  readonly concurrency: number;
  started(workflowId: string): void;
  finished(row: RolloutRow): void;
}

/** Runs one rollout per task. An abort cancels those in flight, waits for them to end, and starts no more. */
export async function runRollouts(
  client: Client,
  tasks: readonly ResolvedTask[],
  { request, concurrency, started, finished }: RunRollouts,
  signal: AbortSignal,
): Promise<RolloutRow[]> {
  const limit = pLimit(concurrency);
  const run = async (task: ResolvedTask): Promise<RolloutRow[]> => {
    if (signal.aborted) return [];
    const { id } = task.task;
    const handle = await startRollout(client, `rollout/${id}/${randomUUID().slice(0, 8)}`, task, request);
    started(handle.workflowId);
    const row = await followRollout(handle, { task: id, agent: request.agent }, signal);
    finished(row);
    return [row];
  };
  const rows = await limit.map(tasks, run).catch((error: unknown) => {
    // Tasks that wait must not start once the caller has stopped following.
    limit.clearQueue();
    throw error;
  });
  return rows.flat().sort((a, b) => a.task.localeCompare(b.task));
}

export type RolloutHandle = WorkflowHandle<typeof rollout>;

export function startRollout(
  client: Client,
  workflowId: string,
  task: ResolvedTask,
  request: SharedRequest,
): Promise<RolloutHandle> {
  const { id } = task.task;
  return client.workflow.start<typeof rollout>('rollout', {
    workflowId,
    taskQueue: controlQueue,
    args: [{ ...request, task }],
    typedSearchAttributes: [shownText(searchAttributes.task, id), shownText(searchAttributes.agent, request.agent)],
    staticSummary: `${request.agent} at ${id}`,
  });
}

/** Waits until a rollout has ended. An abort cancels it first. */
export async function followRollout(
  handle: RolloutHandle,
  { task, agent }: Pick<RolloutRow, 'task' | 'agent'>,
  signal: AbortSignal,
): Promise<RolloutRow> {
  const release = cancelWhenAborted(handle, signal);
  try {
    return rowOf(await handle.result());
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    const outcome = end.kind === 'cancelled' || end.kind === 'terminated' ? 'cancelled' : null;
    const failure = { type: end.kind, message: end.message };
    return rowWithoutResult({ rollout: handle.workflowId, task, agent, outcome, failure });
  } finally {
    release();
  }
}
