import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { sweepWindowId } from '../../workflows/contracts/ids.ts';
import {
  pauseSignal,
  resumeSignal,
  setBudgetUpdate,
  sweepStatusQuery,
  windowReportSignal,
} from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import type { SweepWindowReport } from '../../workflows/contracts/sweep-state.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { bundleChanged, shrinkWindows } from '../helpers/temporal/changed-workflows.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until as untilWithin } from '../helpers/until.ts';

type Sweep = WorkflowHandle<(request: SweepRequest) => Promise<SweepResult>>;

/** Many workflows take long on a busy machine. */
const limitMs = 240_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

describe('a sweep in windows of two rollouts', () => {
  let stack: ScriptedStack;

  before(async () => {
    const workflowBundle = await bundleChanged('sweep/windows.ts', shrinkWindows);
    // The eleven rollouts of a window add more events than this, however few workflow tasks handle them.
    stack = await startScriptedStack({ workflowBundle, suggestContinueAsNewAt: 40 });
  });
  beforeEach(() => {
    stack.script = { reward: () => 1 };
  });
  after(() => stack?.close());

  const start = (workflowId: string, request: SweepRequest) =>
    stack.server.client.workflow.start<(request: SweepRequest) => Promise<SweepResult>>('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId,
      args: [request],
    });
  const statusOf = (handle: Sweep) => handle.query(sweepStatusQuery);
  const windowOf = ({ workflowId }: Sweep, sweepKey: string, window: number) =>
    stack.server.client.workflow.getHandle(sweepWindowId(workflowId, sweepKey, window));
  const wasSignalled = async (window: WorkflowHandle): Promise<boolean> =>
    ((await window.fetchHistory()).events ?? []).some((event) => event.workflowExecutionSignaledEventAttributes);
  /** Returns the reports of a window, in the order in which they reached the sweep. */
  const reportsOf = async (handle: Sweep, window: number): Promise<readonly SweepWindowReport[]> =>
    ((await handle.fetchHistory()).events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: signal }) => {
      if (signal?.signalName !== windowReportSignal.name) return [];
      const report: SweepWindowReport = JSON.parse(Buffer.from(signal.input?.payloads?.[0]?.data ?? []).toString());
      return report.window === window ? [report] : [];
    });
  /** Waits until both windows have reported such a state last. */
  async function untilReported(handle: Sweep, isSo: (report: SweepWindowReport) => boolean): Promise<void> {
    for (const window of [0, 1])
      await until(async () => (await reportsOf(handle, window)).slice(-1).some((report) => isSo(report)));
  }
  const running = async (type: string, run: string): Promise<number> => {
    const query = `WorkflowType="${type}" AND TemperRun="${run}" AND ExecutionStatus="Running"`;
    return (await stack.server.client.workflow.count(query)).count;
  };

  it('makes every attempt once, with the concurrency asked for, though its windows continue as new', async () => {
    let inFlight = 0;
    let most = 0;
    const begin = Promise.withResolvers<void>();
    stack.script = {
      reward: (id) => (/rollout-0-/.test(id) ? 0 : 1),
      provision: async (id) => {
        if (/rollout-3-1$/.test(id)) throw ApplicationFailure.nonRetryable('gone', 'BlobMissing');
      },
      agent: async () => {
        inFlight += 1;
        most = Math.max(most, inFlight);
        await begin.promise;
        inFlight -= 1;
      },
    };
    const handle = await start('windows', { tasks: 'set', count: 11, attempts: 3, concurrency: 6 });
    await until(() => inFlight === 6);
    begin.resolve();
    const result = await handle.result();
    assert.deepEqual([result.counted, result.outcomes.scored, result.retried], [33, 33, 1]);
    assert.equal(most, 6);
    const report = (await createFileStore(`${stack.home}/store`).getJson(result.report.digest)) as SweepReport;
    assert.deepEqual(
      report.taskScores.map(({ counted, passed }) => [counted, passed]),
      Array.from({ length: 11 }, (_, task) => [3, task === 0 ? 0 : 3]),
    );
    const { ended, planned, inFlight: left, outcomes } = await statusOf(handle);
    assert.deepEqual([ended, planned, left, outcomes.scored], [33, 33, 0, 33]);
    const query = 'WorkflowType="sweepWindow" AND TemperRun="windows" AND ExecutionStatus="ContinuedAsNew"';
    await until(async () => (await stack.server.client.workflow.count(query)).count > 0);
  });

  it('pauses and resumes every window', async () => {
    const ends = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => ends.promise };
    const handle = await start('paused', { tasks: 'set', count: 12, concurrency: 4 });
    await until(async () => (await running('rollout', 'paused')) === 4);
    await handle.signal(pauseSignal, 'a look at the host');
    for (const window of [0, 1]) await until(() => wasSignalled(windowOf(handle, handle.firstExecutionRunId, window)));
    assert.equal((await statusOf(handle)).phase, 'paused');
    ends.resolve();
    await until(async () => (await running('rollout', 'paused')) === 0);
    const { pausedBecause, ended } = await statusOf(handle);
    assert.equal(pausedBecause, 'a look at the host');
    assert.ok(ended <= 4);
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 12);
  });

  it('pauses as a whole when one window does', async () => {
    const broken = { now: true };
    stack.script = {
      reward: () => 1,
      provision: async () => {
        if (broken.now) throw ApplicationFailure.nonRetryable('gone', 'BlobMissing');
      },
    };
    const handle = await start('broken', { tasks: 'set', count: 12, concurrency: 4, infraRetries: 20 });
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.phase === 'paused' ? status : null;
    });
    assert.match(paused.pausedBecause ?? '', /of the last \d+ rollouts ended as infra/);
    await until(async () => (await running('rollout', 'broken')) === 0);
    broken.now = false;
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 12);
  });

  it('keeps a pause by hand when the guard of the disk pauses, and resumes what it paused', async () => {
    const ends = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => ends.promise };
    const handle = await start('guarded', { tasks: 'set', count: 8, concurrency: 4 });
    await until(async () => (await running('rollout', 'guarded')) === 4);
    await handle.signal(pauseSignal, 'by a user');
    await handle.signal(pauseSignal, 'the disk is nearly full', 'unless-paused');
    assert.equal((await statusOf(handle)).pausedBecause, 'by a user');
    await handle.signal(resumeSignal, 'the disk is nearly full');
    assert.equal((await statusOf(handle)).pausedBecause, 'by a user');
    ends.resolve();
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 8);
  });

  it('pauses again if its windows pause for the same reason after a resume', async () => {
    let isAway = true;
    stack.script = {
      reward: () => 1,
      record: async () => {
        if (isAway) throw ApplicationFailure.nonRetryable('the store is away', 'BlobMissing');
      },
    };
    const handle = await start('away', { tasks: 'set', count: 4, concurrency: 4 });
    await untilReported(handle, ({ pausedBecause, inFlight }) => pausedBecause !== null && inFlight === 0);
    await handle.signal(resumeSignal);
    const { pausedBecause } = await until(async () => {
      const status = await statusOf(handle);
      return status.phase === 'paused' ? status : null;
    });
    assert.match(pausedBecause ?? '', /^results could not be recorded: the store is away/);
    isAway = false;
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 4);
  });

  it('ignores a report that a later one of the same window has overtaken', async () => {
    const last = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: async (id) => (/rollout-11-0$/.test(id) ? last.promise : undefined) };
    const handle = await start('overtaken', { tasks: 'set', count: 12, concurrency: 4 });
    await until(async () => (await statusOf(handle)).ended === 11);
    const first = windowOf(handle, handle.firstExecutionRunId, 0);
    await until(async () => (await first.describe()).status.name === 'COMPLETED');
    const [earliest] = await reportsOf(handle, 0);
    assert.ok(earliest !== undefined);
    await handle.signal(windowReportSignal, earliest);
    assert.equal((await statusOf(handle)).ended, 11);
    last.resolve();
    assert.equal((await handle.result()).counted, 12);
  });

  it('starts no more rollouts in any window once its budget is lowered below its use', async () => {
    const ends = Promise.withResolvers<void>();
    let begun = 0;
    stack.script = {
      reward: () => 1,
      agent: async (id) => {
        begun += 1;
        if (!/rollout-[0-3]-0$/.test(id)) await ends.promise;
      },
    };
    const handle = await start('lowered', { tasks: 'set', count: 12, concurrency: 4 });
    await until(async () => begun === 8 && (await statusOf(handle)).ended === 4);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ tokens: 10 }] });
    const reason = /^the budget is used up: 24 of 10 tokens/;
    assert.match((await statusOf(handle)).pausedBecause ?? '', reason);
    await untilReported(handle, ({ pausedBecause }) => reason.test(pausedBecause ?? ''));
    ends.resolve();
    await until(async () => (await running('rollout', 'lowered')) === 0);
    assert.equal(begun, 8);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ tokens: null }] });
    assert.deepEqual([(await handle.result()).counted, begun], [12, 12]);
  });

  it('starts no more rollouts than its budget allows, and continues with a higher one', async () => {
    let begun = 0;
    stack.script = {
      reward: () => 1,
      agent: async () => {
        begun += 1;
      },
    };
    const handle = await start('budgeted', { tasks: 'set', count: 12, concurrency: 4, budget: { rollouts: 5 } });
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.phase === 'paused' && (await running('rollout', 'budgeted')) === 0 ? status : null;
    });
    assert.match(paused.pausedBecause ?? '', /^the budget is used up: \d of 5 rollouts; raise it with/);
    assert.ok(begun <= 5, `${begun} rollouts`);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: 20 }] });
    assert.deepEqual([(await handle.result()).counted, begun], [12, 12]);
  });

  it('is cancelled with every rollout, and reports what had ended', async () => {
    const ends = Promise.withResolvers<void>();
    stack.script = {
      reward: () => 1,
      agent: (id) => (/rollout-[0-3]-0$/.test(id) ? Promise.resolve() : ends.promise),
    };
    const handle = await start('cancelled', { tasks: 'set', count: 20, concurrency: 4 });
    await until(async () => (await statusOf(handle)).ended >= 2);
    await handle.cancel();
    await assert.rejects(handle.result());
    ends.resolve();
    await until(
      async () => (await running('rollout', 'cancelled')) + (await running('sweepWindow', 'cancelled')) === 0,
    );
    const { phase, endedEarly, outcomes, inFlight } = await statusOf(handle);
    assert.deepEqual([phase, endedEarly, inFlight], ['cancelled', 'cancelled', 0]);
    assert.ok(outcomes.scored >= 2);
  });

  it('ends early, and says why, if a window is terminated', async () => {
    const ends = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => ends.promise };
    const handle = await start('torn', { tasks: 'set', count: 8, concurrency: 4 });
    await until(async () => (await running('rollout', 'torn')) === 4);
    await windowOf(handle, handle.firstExecutionRunId, 1).terminate('by a test');
    ends.resolve();
    const result = await handle.result();
    assert.match(result.endedEarly ?? '', /window 1 of the sweep ended early/);
    assert.equal(result.counted, 4);
  });

  it('refuses a direct start of a window', async () => {
    const direct = stack.server.client.workflow.start('sweepWindow', {
      taskQueue: controlQueue,
      workflowId: 'direct',
      args: [{}],
    });
    await assert.rejects((await direct).result(), ({ cause }: Error) =>
      /expected to be started by an evaluationSweep/.test(String(cause)),
    );
  });
});
