import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { pauseSignal, regradeStatusQuery, resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult, RegradeStatus } from '../../workflows/contracts/regrade.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import type { SweepRequest } from '../../workflows/contracts/sweep.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { payloadSizes } from '../helpers/temporal/payload-sizes.ts';
import { evaluationSeconds } from '../helpers/temporal/script.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

const run = promisify(execFile);
const rolloutsOfSweep = 20;

describe('a regrade', () => {
  let stack: ScriptedStack;

  before(async () => {
    stack = await startScriptedStack({ suggestContinueAsNewAt: 80 });
    // The rollouts to grade again: tasks 0 to 4 are solved, one rollout has no diff, the rest are not solved.
    stack.script = {
      reward: (id) => (/rollout-[0-4]-/.test(id) ? 1 : 0),
      provision: async (id) => {
        if (id.includes('rollout-19-')) throw refused('the task is gone from the store');
      },
    };
    const request: SweepRequest = { tasks: 'set', count: rolloutsOfSweep, concurrency: 4, infraRetries: 0 };
    await stack.server.client.workflow.execute('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId: 'sweep',
      args: [request],
    });
    // The list, by which the tests find the rollouts, lags behind.
    const ended = 'WorkflowType="rollout" AND ExecutionStatus="Completed"';
    await until(async () => (await stack.server.client.workflow.count(ended)).count === rolloutsOfSweep);
  });
  beforeEach(() => {
    stack.script = { reward: () => 0 };
  });
  after(async () => {
    await stack?.close();
  });

  type Regrade = WorkflowHandle<(request: RegradeRequest) => Promise<RegradeResult>>;
  const start = (workflowId: string, request: RegradeRequest): Promise<Regrade> =>
    stack.server.client.workflow.start('regrade', { taskQueue: controlQueue, workflowId, args: [request] });
  const regrade = async (workflowId: string, request: RegradeRequest): Promise<RegradeResult> =>
    (await start(workflowId, request)).result();
  const reportOf = async ({ report }: Pick<RegradeResult, 'report'>): Promise<RegradeReport> =>
    (await createFileStore(`${stack.home}/store`).getJson(report.digest)) as RegradeReport;
  const statusOf = (handle: Regrade): Promise<RegradeStatus> => handle.query(regradeStatusQuery);
  /** Returns the workflow ids of the sweep's rollouts that match. */
  const idsOf = async (tasks: RegExp): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { workflowId } of stack.server.client.workflow.list({ query: 'WorkflowType="rollout"' })) {
      if (tasks.test(workflowId)) ids.push(workflowId);
    }
    return ids;
  };

  it('grades each rollout of a sweep again, respects its concurrency, and continues as new', async () => {
    let inFlight = 0;
    let most = 0;
    const all = Promise.withResolvers<void>();
    stack.script = {
      reward: () => 1,
      evaluate: async () => {
        inFlight += 1;
        most = Math.max(most, inFlight);
        if (inFlight === 4) all.resolve();
        await all.promise;
        await new Promise((resolve) => setTimeout(resolve, 30));
        inFlight -= 1;
      },
    };
    const result = await regrade('all', { run: 'sweep', concurrency: 4 });
    assert.deepEqual(result.states, { same: 5, changed: 14, unstable: 0, failed: 0, 'left-out': 1 });
    assert.deepEqual([result.rollouts, result.meanAfter, result.endedEarly], [20, 1, null]);
    assert.equal(result.meanBefore?.toFixed(4), (5 / 19).toFixed(4));
    assert.equal(most, 4);
    const { rollouts, unknown, evaluationSeconds: spent } = result.cost?.scored ?? {};
    assert.deepEqual([rollouts, unknown], [19, 0]);
    assert.equal(spent, 19 * evaluationSeconds, 'no wait is billed');
    const { rows, input } = await reportOf(result);
    assert.equal(new Set(rows.map(({ rollout }) => rollout)).size, 20);
    const [out] = rows.filter(({ state }) => state === 'left-out');
    assert.deepEqual([out?.why, out?.before, out?.after], ['it ended as infra, BlobMissing', null, null]);
    assert.equal(input.run, 'sweep');
    // The number of executions varies, and the list lags behind.
    const continued = 'WorkflowId="all" AND ExecutionStatus="ContinuedAsNew"';
    await until(async () => (await stack.server.client.workflow.count(continued)).count >= 1);
    const { typedSearchAttributes: found, memo } = await stack.server.client.workflow.getHandle('all').describe();
    assert.deepEqual([found.get(searchAttributes.run), memo?.phase, memo?.ended], ['sweep', 'done', 20]);
  });

  it('starts no rollout and changes none', async () => {
    const rollouts = await stack.server.client.workflow.count('WorkflowType="rollout"');
    assert.equal(rollouts.count, rolloutsOfSweep);
    const [unsolved = ''] = await idsOf(/rollout-7-/);
    assert.equal((await stack.server.client.workflow.getHandle(unsolved).result()).reward, 0);
  });

  it('keeps every value of its history under 8 KB, and few events beyond the limit', async () => {
    const sizes: number[] = [];
    const lengths: number[] = [];
    for await (const { runId } of stack.server.client.workflow.list({ query: 'WorkflowId="all"' })) {
      const { events } = await stack.server.client.workflow.getHandle('all', runId).fetchHistory();
      lengths.push(events?.length ?? 0);
      sizes.push(...payloadSizes(events));
    }
    assert.ok(sizes.length > 60 && Math.max(...sizes) < 8_192, `largest of ${sizes.length}: ${Math.max(...sizes)}`);
    assert.ok(Math.max(...lengths) < 80 + 4 * 20, `${lengths}`);
  });

  it('repeats the evaluations of each diff as requested, and finds those that disagree', async () => {
    let flips = 0;
    stack.script = { reward: () => flips++ % 2 };
    const rollouts = await idsOf(/rollout-[56]-/);
    const result = await regrade('flaky', { rollouts, repeat: 3, concurrency: 1 });
    assert.deepEqual([flips, result.states.unstable, result.meanAfter], [6, 2, null]);
    const { rows } = await reportOf(result);
    assert.deepEqual(
      rows.map(({ after, evaluations }) => [after, evaluations.map(({ reward }) => reward)]),
      [
        [null, [0, 1, 0]],
        [null, [1, 0, 1]],
      ],
    );
    for (const { evaluations } of rows) assert.match(evaluations[0]?.log ?? '', /^[0-9a-f]{64}$/);
  });

  it('grades only rollouts of one grader version, and names the version of the rest', async () => {
    stack.script = { reward: () => 0 };
    const rollouts = await idsOf(/rollout-[58]-/);
    assert.equal((await regrade('of-scripted', { rollouts, grader: 'scripted' })).states.same, 2);
    const other = await regrade('of-other', { rollouts, grader: '0123456789ab' });
    assert.equal(other.states['left-out'], 2);
    assert.equal((await reportOf(other)).rows[0]?.why, 'its grader was scripted');
  });

  it('counts a rollout that could not be graded as failed and never as 0, and pauses if nearly all fail', async () => {
    let broken = true;
    stack.script = {
      reward: () => {
        if (broken) throw refused('the diff is gone from the store');
        return 0;
      },
    };
    const handle = await start('broken', { run: 'sweep', concurrency: 1 });
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.pausedBecause === null ? null : status;
    }, 240_000);
    assert.match(paused.pausedBecause ?? '', /16 of the last 16 evaluations ended as infra/);
    broken = false;
    await handle.signal(resumeSignal);
    const result = await handle.result();
    const { states } = result;
    assert.deepEqual([states.failed, states.same + states.changed, states['left-out']], [16, 3, 1]);
    const { rows } = await reportOf(result);
    const [failed] = rows.filter(({ state }) => state === 'failed');
    assert.deepEqual([failed?.after, failed?.failure?.type], [null, 'BlobMissing']);
  });

  it('evaluates nothing while it is paused', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stack.script = { reward: () => 0, evaluate: () => promise };
    const handle = await start('paused', { rollouts: await idsOf(/rollout-1[0-3]-/), concurrency: 2 });
    await until(async () => (await statusOf(handle)).inFlight === 2);
    await handle.signal(pauseSignal, 'lunch');
    resolve();
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.ended === 2 ? status : null;
    });
    assert.deepEqual([paused.phase, paused.pausedBecause, paused.inFlight], ['paused', 'lunch', 0]);
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).states.same, 4);
  });

  it('waits for evaluations in flight when it is cancelled, and reports what had ended', async () => {
    let begun = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    // Few evaluations: a regrade whose history is full begins no more, and then it would have none in flight.
    stack.script = { reward: () => 0, evaluate: () => (++begun > 1 ? promise : Promise.resolve()) };
    const handle = await start('cancelled', { run: 'sweep', concurrency: 2 });
    const { regradeKey } = await until(async () => (begun >= 3 ? statusOf(handle) : null));
    await handle.cancel();
    await until(async () => (await statusOf(handle)).phase === 'cancelling');
    resolve();
    await assert.rejects(handle.result(), /cancelled/i);
    const record = (await stack.workers.records.read(regradeKey, 'regrade')) as Pick<RegradeResult, 'report'>;
    const { result, rows } = await reportOf(record);
    assert.deepEqual([result.endedEarly, result.rollouts], ['cancelled', 20]);
    assert.equal((result.cost?.scored?.rollouts ?? 0) + (result.cost?.cancelled?.rollouts ?? 0), 3);
    assert.ok(rows.length >= 1 && rows.length <= 4, `${rows.length} rows`);
  });

  it('refuses ids that are not rollouts, a run without rollouts, and an input without a selection', async () => {
    const refusals: readonly { readonly request: RegradeRequest; readonly message: RegExp }[] = [
      {
        request: { rollouts: ['sweep'] },
        message: /rollouts: expected workflow ids of rollouts, got sweep, which is a evaluationSweep/,
      },
      {
        request: { rollouts: ['unknown'] },
        message: /got unknown, which has no record, and this server does not know/,
      },
      { request: { run: 'unknown' }, message: /run: expected a run with rollouts that have ended, got unknown/ },
      { request: {}, message: /regrade: input: expected run, rollouts or grader, to say which rollouts/ },
      { request: { run: 'sweep', rollouts: ['x'] }, message: /expected run or rollouts, not both/ },
    ];
    for (const [number, { request, message }] of refusals.entries()) {
      await assert.rejects(regrade(`refused-${number}`, request), (error: Error) => {
        assert.match(rootOf(error), message);
        return true;
      });
    }
  });

  it('works the same when `temporal workflow start` starts it, below the priority of training', async () => {
    const words = ['--type', 'regrade', '--task-queue', controlQueue, '--workflow-id', 'typed'];
    const [one = ''] = await idsOf(/rollout-9-/);
    await run(
      stack.server.cli,
      ['workflow', 'execute', ...words, '--input', JSON.stringify({ rollouts: [one] }), ...stack.server.cliFlags],
      { env: { PATH: process.env.PATH, HOME: stack.home } },
    );
    const handle = stack.server.client.workflow.getHandle('typed');
    assert.equal((await handle.result()).states.same, 1);
    const { events } = await handle.fetchHistory();
    const evaluations = events?.flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'evaluate' ? [scheduled.priority?.priorityKey] : [],
    );
    assert.deepEqual(evaluations, [4]);
  });
});

function refused(message: string): Error {
  return ApplicationFailure.nonRetryable(message, 'BlobMissing');
}

function rootOf(error: Error): string {
  return error.cause instanceof Error ? rootOf(error.cause) : error.message;
}
