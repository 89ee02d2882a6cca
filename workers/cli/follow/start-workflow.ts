import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowHandleWithFirstExecutionRunId,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { controlQueue } from '../../../workflows/contracts/ids.ts';
import { sweepPriority } from '../../../workflows/contracts/priority.ts';
import type { RegradeRequest } from '../../../workflows/contracts/regrade.ts';
import type { RunRequest } from '../../../workflows/contracts/run.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import type { SweepRequest } from '../../../workflows/contracts/sweep.ts';
import type { evaluationSweep, regrade, trainingRun } from '../../../workflows/index.ts';

type Started<T extends Workflow> = WorkflowHandleWithFirstExecutionRunId<T>;

/** No execution timeout: it would kill the clean-up too. */
export async function startRun(client: Client, id: string, request: RunRequest): Promise<Started<typeof trainingRun>> {
  return await client.workflow
    .start<typeof trainingRun>('trainingRun', {
      workflowId: id,
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: id }],
      staticSummary: `${request.steps ?? ''} steps on ${request.tasks ?? 'the default tasks'}`.trim(),
    })
    .catch((error: unknown) => {
      throw alreadyStarted(error, id);
    });
}

export async function startSweep(
  client: Client,
  id: string,
  request: SweepRequest,
): Promise<Started<typeof evaluationSweep>> {
  return await client.workflow
    .start<typeof evaluationSweep>('evaluationSweep', {
      workflowId: id,
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: id }],
      priority: { priorityKey: sweepPriority },
      staticSummary: `${request.count ?? ''} tasks of ${request.tasks}`.trim(),
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
      taskQueue: controlQueue,
      args: [request],
      typedSearchAttributes: [{ key: searchAttributes.run, value: run ?? id }],
      priority: { priorityKey: sweepPriority },
      staticSummary: `of ${of}`,
    })
    .catch((error: unknown) => {
      throw alreadyStarted(error, id);
    });
}

function alreadyStarted(error: unknown, id: string): unknown {
  if (!(error instanceof WorkflowExecutionAlreadyStartedError)) return error;
  return new Error(
    `expected no running workflow of the id ${id}, but there is one; choose another with --id, or follow that one with \`temper show ${id}\``,
  );
}
