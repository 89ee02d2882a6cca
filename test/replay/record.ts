/**
 * Records histories that every later change of a workflow has to replay: `node test/replay/record.ts`. Add new ones beside
 * the old; an old one goes only when no such execution can exist any more.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { controlQueue, groupId, rolloutId, stepId } from '../../workflows/contracts/ids.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest } from '../../workflows/contracts/sweep.ts';
import { startScriptedWorkers } from '../helpers/scripted-activities.ts';
import { startTestServer } from '../helpers/temporal.ts';

const version = process.argv[2] ?? '0.1.0';
const home = await mkdtemp(join(tmpdir(), 'temper-record-'));
const server = await startTestServer();
const workers = await startScriptedWorkers(server, home, { reward: (id) => (id.endsWith('rollout-0') ? 0 : 1) });
try {
  const request: RunRequest = { steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2, historyEvents: 60 };
  const start = { taskQueue: controlQueue, args: [request] };
  const handle = await server.client.workflow.start('trainingRun', { ...start, workflowId: 'recorded' });
  const { runKey }: RunStatus = await handle.result();
  const sweep: SweepRequest = { tasks: 'generated:test/1', count: 3, attempts: 4, concurrency: 2, historyEvents: 60 };
  const sweepHandle = await server.client.workflow.start('evaluationSweep', {
    taskQueue: controlQueue,
    workflowId: 'recorded-sweep',
    args: [sweep],
  });
  await sweepHandle.result();
  const group = groupId('recorded', runKey, 0);
  await save('training-run-first', 'recorded', runKey);
  await save('training-run-last', 'recorded');
  await save('group', group);
  await save('rollout', rolloutId(group, 0));
  await save('training-step', stepId('recorded', runKey, 1));
  await save('evaluation-sweep-first', 'recorded-sweep', sweepHandle.firstExecutionRunId);
  await save('evaluation-sweep-last', 'recorded-sweep');
} finally {
  await workers.close();
  await server.close();
  await rm(home, { recursive: true, force: true });
}

async function save(name: string, workflowId: string, runId?: string): Promise<void> {
  const history = await server.client.workflow.getHandle(workflowId, runId).fetchHistory();
  const file = join(import.meta.dirname, 'histories', `${name}-${version}.json`);
  await writeFile(file, `${JSON.stringify({ workflowId, history: JSON.parse(historyToJSON(history)) })}\n`);
  console.log(`${file}: ${history.events?.length} events`);
}
