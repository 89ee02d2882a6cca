import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { sweepWindowId } from '../../workflows/contracts/ids.ts';
import {
  pauseSignal,
  resumeSignal,
  setBudgetUpdate,
  sweepStatusQuery,
  windowControlSignal,
  windowReportSignal,
} from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import type { SweepWindowReport } from '../../workflows/contracts/sweep-state.ts';
import { shrinkWindows } from '../helpers/temporal/changed-workflows.ts';
import { holdAgents } from '../helpers/temporal/held-agents.ts';
import { until as untilWithin } from '../helpers/until.ts';

type Sweep = WorkflowHandle<(request: SweepRequest) => Promise<SweepResult>> & {
  readonly firstExecutionRunId?: string;
};

const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, 240_000);

/** Lets a sweep that is paused learn of the starts of its windows only once it was resumed and paused again. */
const learnLate = (module: string): string =>
  shrinkWindows(module).replace('running.set(window, handle);', (set) => {
    const [, sdk] = /\(0,(\w+)\.startChild\)/.exec(module) ?? [];
    const begun = 'atStart.pausedBecause === null || (controls.resumes > 0 && tally.pausedBecause !== null)';
    return `await (0,${sdk}.condition)(() => ${begun}); ${set}`;
  });

describe('the signals of a sweep to its windows', () => {
  const held = holdAgents(learnLate);

  const request: SweepRequest = { tasks: 'set', count: 8, concurrency: 4 };
  const optionsOf = (workflowId: string) => ({ taskQueue: controlQueue, workflowId });
  /** Waits for the first report of the first window that is so. */
  const reportOf = (handle: Sweep, isIt: (report: SweepWindowReport) => boolean): Promise<SweepWindowReport> =>
    until(async () => {
      const reports = ((await handle.fetchHistory()).events ?? []).flatMap((event) => {
        const signal = event.workflowExecutionSignaledEventAttributes;
        if (signal?.signalName !== windowReportSignal.name) return [];
        return [JSON.parse(Buffer.from(signal.input?.payloads?.[0]?.data ?? []).toString()) as SweepWindowReport];
      });
      return reports.find((report) => report.window === 0 && isIt(report)) ?? null;
    });

  it('pause a window that missed a resume and a pause for the same reason while it started', async () => {
    const handle = await held.server.client.workflow.signalWithStart('evaluationSweep', {
      ...optionsOf('late'),
      args: [request],
      signal: pauseSignal,
      signalArgs: ['lunch'],
    });
    await reportOf(handle, ({ pausedBecause }) => pausedBecause === 'lunch');
    await handle.signal(resumeSignal);
    await handle.signal(pauseSignal, 'lunch');
    const { pausedBecause } = await reportOf(handle, ({ resumes }) => resumes === 1);
    assert.deepEqual([pausedBecause, held.begun], ['lunch', 0]);
    held.end();
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 8);
  });

  it('are ignored by a window once a later one has overtaken them', async () => {
    const options = optionsOf('overtaken');
    const handle = await held.server.client.workflow.start('evaluationSweep', { ...options, args: [request] });
    await until(() => held.begun === 4);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: 8 }] });
    await handle.signal(pauseSignal, 'lunch');
    await reportOf(handle, ({ pausedBecause }) => pausedBecause === 'lunch');
    const window = held.server.client.workflow.getHandle(sweepWindowId('overtaken', handle.firstExecutionRunId, 0));
    await window.signal(windowControlSignal, { number: 1, pausedBecause: null, resumes: 1, budget: {} });
    held.end();
    await until(async () => (await handle.query(sweepStatusQuery)).ended === 4);
    await handle.signal(pauseSignal, 'dinner');
    await reportOf(handle, ({ pausedBecause }) => pausedBecause === 'dinner');
    assert.equal(held.begun, 4);
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 8);
  });
});
