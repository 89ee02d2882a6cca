import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { findStep } from '../../infra/report/run-records.ts';
import { resumeSignal, runStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

const limitMs = 240_000;

/** The groups 0 to 3 have no rollout that passes, group 4 none that fails, and the rewards of the others differ. */
function reward(workflowId: string): number {
  const group = Number(/group-(\d+)/.exec(workflowId)?.[1]);
  if (group < 4) return 0;
  return group === 4 || workflowId.endsWith('rollout-0') ? 1 : 0;
}

describe('a step whose groups teach nothing', () => {
  let stack: ScriptedStack;

  before(async () => {
    stack = await startScriptedStack({ script: { reward } });
  });
  after(async () => {
    await stack?.close();
  });

  it('makes no update and does not count in the schedule of the learning rate; several in a row pause the run', async () => {
    const request: RunRequest = {
      tasks: 'generated:train/1',
      steps: 5,
      groupsPerStep: 2,
      rolloutsPerGroup: 2,
      maxStaleness: 0,
      pauseAtEmptySteps: 2,
    };
    const start = { taskQueue: controlQueue, workflowId: 'empty-steps', args: [request] };
    const handle = await stack.server.client.workflow.start('trainingRun', start);
    const paused = await until(async () => {
      const status: RunStatus = await handle.query(runStatusQuery);
      return status.phase === 'paused' && status;
    }, limitMs);
    assert.match(
      paused.pausedBecause ?? '',
      /^the last 2 steps made no update, since their groups teach nothing: of 4 groups 4 have all 0; choose .*, then resume$/,
    );
    assert.deepEqual([paused.step, paused.updates, paused.policyVersion], [2, 0, 2]);
    await handle.signal(resumeSignal);
    const end: RunStatus = await handle.result();
    assert.deepEqual([end.phase, end.step, end.updates, end.groups['zero-variance']], ['done', 5, 3, 5]);
    const schedule = stack.workers.updates.map(({ step, update, mostUpdates }) => [step, update, mostUpdates]);
    assert.deepEqual(schedule, [
      [3, 1, 3],
      [4, 2, 3],
      [5, 3, 3],
    ]);
    const third = await findStep(stack.workers.records, end.runKey, 3);
    assert.deepEqual(third?.result.equalGroups, { 'all-0': 0, 'all-1': 1, equal: 0 });
  });
});
