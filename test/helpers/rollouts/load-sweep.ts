import type { Client, WorkflowHandle } from '@temporalio/client';
import type { SandboxKind } from '../../../infra/sandbox/sandbox.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import type { SweepRequest, SweepResult } from '../../../workflows/contracts/sweep.ts';
import { type TriedStage, triedStages } from './tried-stages.ts';

/** A sweep of many attempts at one task by its reference solution. */
export interface LoadSweep {
  readonly task: string;
  readonly sandbox: SandboxKind;
  readonly attempts: number;
  readonly concurrency: number;
}

export type SweepHandle = WorkflowHandle<(request: SweepRequest) => Promise<SweepResult>>;

export function startLoadSweep(client: Client, workflowId: string, sweep: LoadSweep): Promise<SweepHandle> {
  const { task, sandbox, attempts, concurrency } = sweep;
  const settings = { agent: 'oracle', sandbox };
  return client.workflow.start('evaluationSweep', {
    taskQueue: controlQueue,
    workflowId,
    args: [{ tasks: task, count: 1, attempts, concurrency, infraRetries: 0, settings }],
  });
}

const rolloutsOf = (sweep: string): string => `TemperRun="${sweep}" AND WorkflowType="rollout"`;

/** Counts the rollouts of a sweep that have ended. */
export async function countEnded(client: Client, sweep: string): Promise<number> {
  return (await client.workflow.count(`${rolloutsOf(sweep)} AND ExecutionStatus != "Running"`)).count;
}

export interface EndedRollout extends RolloutResult {
  readonly endedAtMs: number;
  readonly stages: readonly TriedStage[];
}

/** Reads the rollouts of a sweep that has ended, with their histories. */
export async function readRollouts(client: Client, sweep: string): Promise<EndedRollout[]> {
  const rollouts: EndedRollout[] = [];
  for await (const { workflowId, closeTime } of client.workflow.list({ query: rolloutsOf(sweep) })) {
    const result: RolloutResult = await client.workflow.getHandle(workflowId).result();
    const stages = await triedStages(client, workflowId);
    rollouts.push({ ...result, endedAtMs: closeTime?.getTime() ?? 0, stages });
  }
  return rollouts;
}
