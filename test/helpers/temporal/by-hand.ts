import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { until } from '../until.ts';
import type { TestServer } from './temporal.ts';

/** Of `temporal.api.enums.v1.CommandType`. */
const failWorkflow = 5;
const continueAsNew = 10;
const pollMs = 20_000;

/**
 * Takes the next task of a workflow without a worker, which has a task queue to itself, named like it, and answers it: with
 * nothing to do, by a failure of the workflow, or by continuing as new.
 */
export async function answerTask(
  { connection, namespace }: TestServer,
  workflowId: string,
  answer: 'nothing' | 'fail' | 'continue as new',
): Promise<void> {
  const service = connection.workflowService;
  const taskQueue = { name: workflowId };
  const poll = () => service.pollWorkflowTaskQueue({ namespace, taskQueue });
  const { taskToken, workflowType } = await until(async () => {
    const task = await connection.withDeadline(Date.now() + pollMs, poll);
    return task.taskToken.length > 0 && task;
  });
  const next = { workflowType: workflowType ?? null, taskQueue };
  const commands = {
    nothing: [],
    fail: [{ commandType: failWorkflow, failWorkflowExecutionCommandAttributes: { failure: { message: 'by hand' } } }],
    'continue as new': [{ commandType: continueAsNew, continueAsNewWorkflowExecutionCommandAttributes: next }],
  }[answer];
  await service.respondWorkflowTaskCompleted({ namespace, taskToken, commands });
}

/** Back to the first task of the execution, which must have been answered. */
export async function resetToFirstTask(
  { cli, cliFlags }: TestServer,
  workflowId: string,
  runId: string,
): Promise<void> {
  const which = [...cliFlags, '--workflow-id', workflowId, '--run-id', runId];
  const how = ['--type', 'FirstWorkflowTask', '--reason', 'by the test'];
  await promisify(execFile)(cli, ['workflow', 'reset', ...which, ...how]);
}
