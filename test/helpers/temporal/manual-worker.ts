import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isGrpcDeadlineError } from '@temporalio/client';
import { until } from '../until.ts';
import type { TestServer } from './temporal.ts';

/** Values of `temporal.api.enums.v1.CommandType`. */
const failWorkflow = 5;
const continueAsNew = 10;
const pollMs = 20_000;

/** Takes the next task of a workflow that has its own task queue, with the name of its id. */
export const nextTask = (
  { connection, namespace }: Pick<TestServer, 'connection' | 'namespace'>,
  workflowId: string,
) => {
  const poll = () => connection.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name: workflowId } });
  return until(async () => {
    const task = await connection.withDeadline(Date.now() + pollMs, poll).catch(unlessLate);
    return task !== null && task.taskToken.length > 0 && task;
  });
};

/** The server gives a task again that it gave to a poll whose caller had stopped to wait. */
function unlessLate(error: unknown): null {
  if (isGrpcDeadlineError(error)) return null;
  throw error;
}

/**
 * Answers the next task of a workflow instead of a worker: with no command, with a failure of the workflow, or with
 * continue-as-new. The workflow has its own task queue with the name of its id.
 */
export async function answerTask(
  { connection, namespace }: TestServer,
  workflowId: string,
  answer: 'nothing' | 'fail' | 'continue as new',
): Promise<void> {
  const service = connection.workflowService;
  const taskQueue = { name: workflowId };
  const { taskToken, workflowType } = await nextTask({ connection, namespace }, workflowId);
  const next = { workflowType: workflowType ?? null, taskQueue };
  const commands = {
    nothing: [],
    fail: [{ commandType: failWorkflow, failWorkflowExecutionCommandAttributes: { failure: { message: 'by hand' } } }],
    'continue as new': [{ commandType: continueAsNew, continueAsNewWorkflowExecutionCommandAttributes: next }],
  }[answer];
  await service.respondWorkflowTaskCompleted({ namespace, taskToken, commands });
}

/** Resets an execution to its first workflow task, which must have been answered. */
export async function resetToFirstTask(
  { cli, cliFlags }: TestServer,
  workflowId: string,
  runId: string,
): Promise<void> {
  const which = [...cliFlags, '--workflow-id', workflowId, '--run-id', runId];
  const how = ['--type', 'FirstWorkflowTask', '--reason', 'by the test'];
  await promisify(execFile)(cli, ['workflow', 'reset', ...which, ...how]);
}
