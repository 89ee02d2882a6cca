import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { ResolvedTask } from '../../../../workflows/contracts/task.ts';
import { followRollout, type RolloutOf, startRollout } from './one-rollout.ts';
import type { RolloutRow } from './row.ts';

export interface RolloutHooks {
  readonly concurrency: number;
  started(workflowId: string): void;
  finish(row: RolloutRow): void;
}

/** One rollout per task, so many at once. An abort cancels those in flight and waits for their ends. */
export async function runRollouts(
  client: Client,
  tasks: readonly ResolvedTask[],
  request: RolloutOf,
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
  request: RolloutOf,
  hooks: RolloutHooks,
  signal: AbortSignal,
): Promise<RolloutRow> {
  const { id } = task.task;
  const handle = await startRollout(client, `rollout/${id}/${randomUUID().slice(0, 8)}`, task, request);
  hooks.started(handle.workflowId);
  return followRollout(handle, { task: id, agent: request.agent }, signal);
}
