import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowHandleWithFirstExecutionRunId,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { defaultPool } from '../../../workflows/contracts/policy.ts';
import { controlQueue, sweepPriority, sweepTaskTimeout } from '../../../workflows/contracts/queues.ts';
import type { RegradeRequest } from '../../../workflows/contracts/regrade.ts';
import type { RunRequest } from '../../../workflows/contracts/run.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import type { SweepRequest } from '../../../workflows/contracts/sweep.ts';
import type { evaluationSweep, regrade, trainingRun } from '../../../workflows/index.ts';

type Started<T extends Workflow> = WorkflowHandleWithFirstExecutionRunId<T>;

/** The workflow id of a run, sweep or regrade that the user has not named: `run-2026-11-24-10-30-00`. */
export const timestampedId = (prefix: string): string =>
  `${prefix}-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;

/** Starts a training run, without an execution timeout, which would end its clean-up too. `tasks` names its set for people. */
export async function startRun(
  client: Client,
  id: string,
  request: RunRequest,
  tasks: string = request.tasks,
): Promise<Started<typeof trainingRun>> {
  return await client.workflow
    .start<typeof trainingRun>('trainingRun', {
      workflowId: id,
      workflowIdReusePolicy,
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: id }],
      // The run writes it, too, but only in its first task, before which another run may look for those on its pool.
      memo: { pool: request.pool ?? defaultPool },
      staticSummary: `${request.steps ?? ''} steps on ${tasks}`.trim(),
    })
    .catch((error: unknown) => {
      throw alreadyStarted(error, id);
    });
}

/** Starts a sweep. `tasks` names its set for people. */
export async function startSweep(
  client: Client,
  id: string,
  request: SweepRequest,
  tasks: string = request.tasks,
): Promise<Started<typeof evaluationSweep>> {
  return await client.workflow
    .start<typeof evaluationSweep>('evaluationSweep', {
      workflowId: id,
      workflowIdReusePolicy,
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: id }],
      priority: { priorityKey: sweepPriority },
      workflowTaskTimeout: sweepTaskTimeout,
      staticSummary: `${request.count ?? ''} tasks of ${tasks}`.trim(),
    })
    .catch((error: unknown) => {
      throw alreadyStarted(error, id);
    });
}

export async function startRegrade(
  client: Client,
  id: string,
  request: RegradeRequest,
): Promise<Started<typeof regrade>> {
  const { run, rollouts, grader } = request;
  const of = run ?? (rollouts === undefined ? `grader ${grader}` : `${rollouts.length} rollouts`);
  return await client.workflow
    .start<typeof regrade>('regrade', {
      workflowId: id,
      workflowIdReusePolicy,
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: run ?? id }],
      priority: { priorityKey: sweepPriority },
      workflowTaskTimeout: sweepTaskTimeout,
      staticSummary: `of ${of}`,
    })
    .catch((error: unknown) => {
      throw alreadyStarted(error, id);
    });
}

/** The id of a workflow that has failed, been cancelled or terminated may be given again. */
const workflowIdReusePolicy = 'ALLOW_DUPLICATE_FAILED_ONLY';

function alreadyStarted(error: unknown, id: string): unknown {
  if (!(error instanceof WorkflowExecutionAlreadyStartedError)) return error;
  return new Error(
    `a workflow with the id ${id} is running or has ended; choose another id with --id, such as ${id}-2, or look at that one with \`temper show ${id}\``,
  );
}
