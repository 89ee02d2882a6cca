import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { cancelOrphans } from '../../activities/control/reap.ts';
import { sweepRolloutId, sweepWindowId } from '../../workflows/contracts/ids.ts';
import { sweepStatusQuery, windowReportSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import type { SweepWindowReport } from '../../workflows/contracts/sweep-state.ts';
import { shrinkWindows } from '../helpers/temporal/changed-workflows.ts';
import { holdAgents } from '../helpers/temporal/held-agents.ts';
import { resetToFirstTask } from '../helpers/temporal/manual-worker.ts';
import { until } from '../helpers/until.ts';

describe('the windows of a sweep', () => {
  const held = holdAgents(shrinkWindows);

  async function start(workflowId: string) {
    const args: [SweepRequest] = [{ tasks: 'set', count: 8, concurrency: 4 }];
    const options = { taskQueue: controlQueue, workflowId, args };
    const handle = await held.server.client.workflow.start<(request: SweepRequest) => Promise<SweepResult>>(
      'evaluationSweep',
      options,
    );
    await until(() => held.begun === 4);
    return handle;
  }
  const reportsOf = async (handle: WorkflowHandle): Promise<readonly SweepWindowReport[]> =>
    ((await handle.fetchHistory()).events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: signal }) =>
      signal?.signalName === windowReportSignal.name
        ? [JSON.parse(Buffer.from(signal.input?.payloads?.[0]?.data ?? []).toString()) as SweepWindowReport]
        : [],
    );

  it('continue without one that is cancelled by hand, and the sweep says so in its report', async () => {
    const handle = await start('one-cancelled');
    const id = sweepWindowId('one-cancelled', handle.firstExecutionRunId, 1);
    await held.server.client.workflow.getHandle(id).cancel();
    await until(async () => (await handle.query(sweepStatusQuery)).outcomes.cancelled === 2);
    held.end();
    const result = await handle.result();
    assert.match(result.endedEarly ?? '', /window 1 of the sweep ended early/);
    assert.equal(result.counted, 4);
  });

  it('leave their rollouts to the reaper if one is terminated, and those of the others continue', async () => {
    const { client } = held.server;
    const handle = await start('one-terminated');
    const key = handle.firstExecutionRunId;
    await client.workflow.getHandle(sweepWindowId('one-terminated', key, 1)).terminate('by the test');
    // The list of workflows follows a moment later.
    const running = 'WorkflowType="rollout" AND ExecutionStatus="Running" AND TemperRun="one-terminated"';
    await until(async () => (await client.workflow.count(running)).count === 4);
    const left = [1, 3].map((task) => sweepRolloutId('one-terminated', key, { task, attempt: 0, retry: 0 }));
    const { rollouts } = await cancelOrphans(client);
    assert.deepEqual([...rollouts].sort(), left);
    for (const id of left) await assert.rejects(client.workflow.getHandle(id).result(), /cancelled/i);
    held.end();
    const result = await handle.result();
    assert.match(
      result.endedEarly ?? '',
      /window 1 .* ended early, and rollouts that it did not report are not counted/,
    );
    assert.equal(result.counted, 4);
  });

  it('are cancelled with their rollouts if the sweep is reset, which ends early', async () => {
    const { client } = held.server;
    const { firstExecutionRunId: key } = await start('reset');
    await resetToFirstTask(held.server, 'reset', key);
    const result: SweepResult = await client.workflow.getHandle('reset').result();
    assert.match(result.endedEarly ?? '', /window \d of the sweep ended early/);
    for (const window of [0, 1]) {
      await assert.rejects(client.workflow.getHandle(sweepWindowId('reset', key, window)).result(), /cancelled/i);
    }
    const left = 'ExecutionStatus="Running" AND TemperRun="reset"';
    await until(async () => (await client.workflow.count(left)).count === 0);
  });

  it('report to their own sweep alone, and not to a later one of its name', async () => {
    const handle = await start('namesake');
    const [report] = await until(async () => {
      const reports = await reportsOf(handle);
      return reports.length > 0 && reports;
    });
    assert.ok(report !== undefined);
    const { outcomes } = report.sums;
    const sums = { ...report.sums, outcomes: { ...outcomes, scored: 7 } };
    await handle.signal(windowReportSignal, { ...report, sweepKey: 'another', chunks: 9, sums });
    assert.equal((await handle.query(sweepStatusQuery)).ended, 0);
    held.end();
    assert.equal((await handle.result()).counted, 8);
  });
});
