import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { sweepWindowId } from '../../workflows/contracts/ids.ts';
import { sweepStatusQuery, windowReportSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import type { SweepWindowReport } from '../../workflows/contracts/sweep-state.ts';
import { shrinkWindows } from '../helpers/temporal/changed-workflows.ts';
import { holdAgents } from '../helpers/temporal/held-agents.ts';
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
