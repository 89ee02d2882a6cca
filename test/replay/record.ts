/**
 * Records histories that every later change of a workflow has to replay: `node test/replay/record.ts <version>`. Add new ones beside
 * the old; an old one goes only when no such execution can exist any more.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { controlQueue, groupId, rolloutId, stepId } from '../../workflows/contracts/ids.ts';
import type { RegradeRequest } from '../../workflows/contracts/regrade.ts';
import type { RolloutRequest } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest } from '../../workflows/contracts/sweep.ts';
import { startScriptedStack } from '../helpers/temporal/scripted-stack.ts';

const [, , version = ''] = process.argv;
if (!/^\d+\.\d+\.\d+$/.test(version))
  throw new Error(`expected a version such as 1.2.3, got ${JSON.stringify(version)}`);
const reward = (id: string): number => (id.endsWith('rollout-0') ? 0 : 1);
const stack = await startScriptedStack({ reward });
const { workflow } = stack.server.client;
try {
  const request: RunRequest = { steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2, historyEvents: 60 };
  const start = { taskQueue: controlQueue, args: [request] };
  const handle = await workflow.start('trainingRun', { ...start, workflowId: 'recorded' });
  const { runKey }: RunStatus = await handle.result();
  const sweep: SweepRequest = { tasks: 'generated:test/1', count: 3, attempts: 4, concurrency: 2, historyEvents: 60 };
  const sweepHandle = await workflow.start('evaluationSweep', {
    taskQueue: controlQueue,
    workflowId: 'recorded-sweep',
    args: [sweep],
  });
  await sweepHandle.result();
  const regrade: RegradeRequest = { run: 'recorded-sweep', repeat: 2, concurrency: 2, historyEvents: 60 };
  const again = { taskQueue: controlQueue, args: [regrade] };
  const regradeHandle = await workflow.start('regrade', { ...again, workflowId: 'recorded-regrade' });
  await regradeHandle.result();
  stack.script = { reward, pulled: true };
  const one: RolloutRequest = { task: 'generated:test/1/0' };
  await workflow.execute('rollout', { taskQueue: controlQueue, args: [one], workflowId: 'recorded-pulled' });
  const group = groupId('recorded', runKey, 0);
  await save('training-run-first', 'recorded', runKey);
  await save('training-run-last', 'recorded');
  await save('group', group);
  await save('rollout', rolloutId(group, 0));
  await save('training-step', stepId('recorded', runKey, 1));
  await save('evaluation-sweep-first', 'recorded-sweep', sweepHandle.firstExecutionRunId);
  await save('evaluation-sweep-last', 'recorded-sweep');
  await save('regrade-first', 'recorded-regrade', regradeHandle.firstExecutionRunId);
  await save('regrade-last', 'recorded-regrade');
  await save('rollout-pulled', 'recorded-pulled');
} finally {
  await stack.close();
}

async function save(name: string, workflowId: string, runId?: string): Promise<void> {
  const history = await workflow.getHandle(workflowId, runId).fetchHistory();
  const file = join(import.meta.dirname, 'histories', `${name}-${version}.json`);
  await writeFile(file, `${JSON.stringify({ workflowId, history: JSON.parse(historyToJSON(history)) })}\n`, {
    flag: 'wx',
  });
  console.log(`${file}: ${history.events?.length} events`);
}
