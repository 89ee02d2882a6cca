import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { sweepRolloutId } from '../../workflows/contracts/ids.ts';
import { pauseSignal, resumeSignal, setBudgetUpdate, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import type { SweepReport, SweepRequest, SweepResult, SweepStatus } from '../../workflows/contracts/sweep.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { payloadSizes } from '../helpers/temporal/payload-sizes.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until as untilWithin } from '../helpers/until.ts';

const run = promisify(execFile);
/** Many workflows take long on a busy machine. */
const limitMs = 240_000;
const eventsBeforeContinue = 40;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

describe('an evaluation sweep', () => {
  let stack: ScriptedStack;

  before(async () => {
    stack = await startScriptedStack({ suggestContinueAsNewAt: eventsBeforeContinue });
  });
  beforeEach(() => {
    stack.script = { reward: () => 1 };
  });
  after(async () => {
    await stack?.close();
  });

  type Sweep = WorkflowHandle<(request: SweepRequest) => Promise<SweepResult>>;
  const start = (workflowId: string, request: SweepRequest): Promise<Sweep> =>
    stack.server.client.workflow.start('evaluationSweep', { taskQueue: controlQueue, workflowId, args: [request] });
  const sweep = async (workflowId: string, request: SweepRequest): Promise<SweepResult> =>
    (await start(workflowId, request)).result();
  const reportOf = async ({ report }: SweepResult): Promise<SweepReport> =>
    (await createFileStore(`${stack.home}/store`).getJson(report.digest)) as SweepReport;
  const statusOf = (handle: Sweep): Promise<SweepStatus> => handle.query(sweepStatusQuery);

  it('makes the requested attempts at each task, and reports the pass rate with its interval', async () => {
    stack.script = { reward: (id) => (/rollout-0-/.test(id) || /rollout-1-0/.test(id) ? 1 : 0) };
    const result = await sweep('rates', { tasks: 'set', count: 4, attempts: 2, concurrency: 3 });
    const { tasks, attempts, counted, outcomes, passAt1, passAtK, meanReward, policyVersion } = result;
    assert.deepEqual([tasks, attempts, counted, outcomes.scored], [4, 2, 8, 8]);
    assert.deepEqual([meanReward, passAt1?.mean, passAt1?.tasks, policyVersion], [0.375, 0.375, 4, 0]);
    assert.deepEqual(
      passAtK.map(({ k, mean, tasks: over }) => [k, mean, over]),
      [
        [1, 0.375, 4],
        [2, 0.5, 4],
      ],
    );
    const { taskScores } = await reportOf(result);
    assert.deepEqual(
      taskScores.map(({ task, counted: of, passed }) => [task, of, passed]),
      [
        ['set#0', 2, 2],
        ['set#1', 2, 1],
        ['set#2', 2, 0],
        ['set#3', 2, 0],
      ],
    );
    const handle = stack.server.client.workflow.getHandle('rates');
    const { typedSearchAttributes: found, memo } = await handle.describe();
    assert.deepEqual([found.get(searchAttributes.run), found.get(searchAttributes.agent)], ['rates', 'mini']);
    assert.deepEqual([found.get(searchAttributes.policyVersion), found.get(searchAttributes.reward)], [0, 0.375]);
    assert.deepEqual([memo?.phase, memo?.ended], ['done', 8]);
  });

  it('respects its concurrency, continues as new with rollouts in flight, and loses or repeats none', async () => {
    let inFlight = 0;
    let most = 0;
    const all = Promise.withResolvers<void>();
    stack.script = {
      reward: () => 1,
      agent: async () => {
        inFlight += 1;
        most = Math.max(most, inFlight);
        if (inFlight === 6) all.resolve();
        await all.promise;
        await new Promise((resolve) => setTimeout(resolve, 30));
        inFlight -= 1;
      },
    };
    // Each rollout adds three events however few workflow tasks handle them, which is enough to continue twice.
    const request = { tasks: 'set', count: 10, attempts: 4, concurrency: 6 };
    const handle = await start('long', request);
    const result = await handle.result();
    assert.deepEqual([result.counted, result.cost.rollouts, result.retried], [40, 40, 0]);
    assert.equal(most, 6);
    await untilCount(`WorkflowId="long" AND ExecutionStatus="ContinuedAsNew"`, (count) => count >= 2);
    await untilCount('TemperRun="long" AND WorkflowType="rollout"', (count) => count === 40);
  });

  it('keeps every value of its history under 8 KB', async () => {
    const sizes: number[] = [];
    // All executions are checked, because the length of the last one varies.
    for await (const { runId } of stack.server.client.workflow.list({ query: `WorkflowId="long"` })) {
      const { events } = await stack.server.client.workflow.getHandle('long', runId).fetchHistory();
      sizes.push(...payloadSizes(events));
    }
    assert.ok(sizes.length > 30 && Math.max(...sizes) < 8_192, `largest of ${sizes.length}: ${Math.max(...sizes)}`);
  });

  it('retries an attempt that ended as infra as a new rollout, and lists it if it stays infra', async () => {
    stack.script = {
      reward: () => 1,
      provision: async (id) => {
        const healed = id.includes('rollout-0-0-retry-1');
        if (!healed && /rollout-[01]-/.test(id)) throw lost();
      },
    };
    const earlier = stack.workers.opened.length;
    const result = await sweep('infra', { tasks: 'set', count: 3, infraRetries: 1, concurrency: 1, seed: 7 });
    const opened = stack.workers.opened.slice(earlier);
    assert.equal(new Set(opened.map(({ epoch }) => epoch.rollout)).size, 5);
    const seeds = new Set(opened.map(({ seed }) => seed));
    assert.deepEqual(
      [...seeds],
      ['sweep/7/0/0/1', 'sweep/7/1/0/1', 'sweep/7/2/0/1'],
      'a retry has that of its attempt',
    );
    assert.deepEqual([result.counted, result.retried, result.leftOut.infra, result.outcomes.infra], [2, 2, 1, 1]);
    assert.equal(result.passAt1?.mean, 1, 'what is left out is no 0');
    const { leftOut } = await reportOf(result);
    assert.deepEqual(
      leftOut.map(({ taskId, retry, why, failure }) => [taskId, retry, why, failure?.type]),
      [['set#1', 1, 'infra', 'BlobMissing']],
    );
  });

  it('ends early when the engine serves another version, and counts no rollout of that version', async () => {
    let version = 5;
    let ended = 0;
    stack.script = {
      reward: () => 1,
      version: () => version,
      agent: async () => {
        ended += 1;
        if (ended === 3) version = 6;
      },
    };
    const result = await sweep('moved', { tasks: 'set', count: 20, concurrency: 1 });
    assert.deepEqual([result.policyVersion, result.counted, result.leftOut['other-version']], [5, 2, 1]);
    assert.match(result.endedEarly ?? '', /the sweep evaluates version 5, and version 6 sampled moved\/.*rollout-2-0/);
  });

  it('is refused before it starts a rollout if its version is not served', async () => {
    const refused = sweep('not-served', { tasks: 'set', policyVersion: 7 });
    await assert.rejects(refused, ({ cause }: Error) => {
      assert.match(String((cause as Error).cause), /policyVersion: expected a version that the engines serve, got 7/);
      return true;
    });
    await untilCount('TemperRun="not-served" AND WorkflowType="rollout"', (count) => count === 0);
  });

  it('starts no rollout while it is paused', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => promise };
    const handle = await start('paused', { tasks: 'set', count: 4, concurrency: 2 });
    await until(async () => (await statusOf(handle)).inFlight === 2);
    await handle.signal(pauseSignal, 'lunch');
    resolve();
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.ended === 2 ? status : null;
    });
    assert.deepEqual([paused.phase, paused.pausedBecause, paused.inFlight], ['paused', 'lunch', 0]);
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 4);
  });

  it('pauses at its budget, which counts retries, and continues with a higher one', async () => {
    stack.script = {
      reward: () => 1,
      provision: async (id) => {
        if (/rollout-0-0$/.test(id)) throw ApplicationFailure.nonRetryable('gone', 'BlobMissing');
      },
    };
    const handle = await start('budgeted', { tasks: 'set', count: 6, concurrency: 2, budget: { rollouts: 4 } });
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.phase === 'paused' && status.inFlight === 0 ? status : null;
    });
    const reason = 'the budget is used up: 4 of 4 rollouts; raise it with `temper budget budgeted rollouts=N`';
    assert.deepEqual([paused.pausedBecause, paused.ended, paused.retried], [reason, 3, 1]);
    // Two of the three attempts that are left start, and use it up.
    const used = paused.budget?.used.tokens ?? 0;
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: null, tokens: used + 1 }] });
    await until(async () => /of \d+ tokens; raise/.test((await statusOf(handle)).pausedBecause ?? ''));
    assert.deepEqual(await handle.executeUpdate(setBudgetUpdate, { args: [{ tokens: null }] }), {});
    assert.deepEqual([(await handle.result()).counted, (await statusOf(handle)).budget?.used.rollouts], [6, 7]);
  });

  it('pauses itself when nearly all of its rollouts end as infra', async () => {
    let broken = true;
    stack.script = {
      reward: () => 1,
      provision: async () => {
        if (broken) throw lost();
      },
    };
    const handle = await start('broken', { tasks: 'set', count: 17, concurrency: 1, infraRetries: 20 });
    const paused = await until(async () => {
      const status = await statusOf(handle);
      return status.pausedBecause === null ? null : status;
    });
    assert.match(paused.pausedBecause ?? '', /16 of the last 16 rollouts ended as infra/);
    broken = false;
    await handle.signal(resumeSignal);
    assert.equal((await handle.result()).counted, 17);
  });

  it('cancels its rollouts when it is cancelled, also those of an earlier execution, and reports what had ended', async () => {
    let begun = 0;
    const { promise: untilCancelled, resolve: letGo } = Promise.withResolvers<void>();
    stack.script = {
      reward: () => 1,
      agent: () => {
        begun += 1;
        return begun > 12 ? untilCancelled : Promise.resolve();
      },
    };
    const handle = await start('cancelled', { tasks: 'set', count: 20, concurrency: 3 });
    const { sweepKey } = await until(async () => {
      const status = await statusOf(handle);
      return status.ended === 12 && status.inFlight === 3 && begun === 15 ? status : null;
    });
    await untilCount('WorkflowId="cancelled" AND ExecutionStatus="ContinuedAsNew"', (count) => count >= 1);
    await handle.cancel();
    await assert.rejects(handle.result(), /cancelled/i);
    letGo();
    await untilCount('TemperRun="cancelled" AND ExecutionStatus="Running"', (count) => count === 0);
    const record = (await stack.workers.records.read(sweepKey, 'sweep')) as { report: SweepResult['report'] };
    const { result, leftOut } = (await createFileStore(`${stack.home}/store`).getJson(
      record.report.digest,
    )) as SweepReport;
    assert.deepEqual([result.counted, result.leftOut.cancelled, result.endedEarly], [12, 3, 'cancelled']);
    assert.equal(leftOut.length, 3);
    // Closing their sessions told what they had used.
    const { rollouts, unknown, promptTokens } = result.cost.ledger?.cancelled ?? {};
    assert.deepEqual([rollouts, unknown, promptTokens], [3, 0, 3 * 40]);
  });

  it('cancels the rollouts that it has started when it is cancelled during the start', async () => {
    const { promise: untilCancelled, resolve: letGo } = Promise.withResolvers<void>();
    stack.script = { reward: () => 1, agent: () => untilCancelled };
    const handle = await start('hasty', { tasks: 'set', count: 20, concurrency: 20 });
    await until(async () => (await statusOf(handle)).inFlight > 0);
    await handle.cancel();
    await assert.rejects(handle.result(), /cancelled/i);
    letGo();
    await untilCount('TemperRun="hasty" AND ExecutionStatus="Running"', (count) => count === 0);
  });

  it('runs below the priority of training', async () => {
    const { sweepKey } = await statusOf(stack.server.client.workflow.getHandle('rates'));
    const id = sweepRolloutId('rates', sweepKey, { task: 0, attempt: 0, retry: 0 });
    const { events } = await stack.server.client.workflow.getHandle(id).fetchHistory();
    assert.equal(events?.[0]?.workflowExecutionStartedEventAttributes?.priority?.priorityKey, 4);
  });

  it('works the same when `temporal workflow start` starts it, and explains an invalid input', async () => {
    const temporal = (...words: string[]) =>
      run(stack.server.cli, ['workflow', ...words, ...stack.server.cliFlags], {
        env: { PATH: process.env.PATH, HOME: stack.home },
      });
    const common = ['--type', 'evaluationSweep', '--task-queue', controlQueue, '--workflow-id'];
    await temporal('execute', ...common, 'typed', '--input', '{"tasks": "set", "count": 2}');
    const result: SweepResult = await stack.server.client.workflow.getHandle('typed').result();
    assert.deepEqual([result.counted, result.passAt1?.mean], [2, 1]);
    const bad = temporal('execute', ...common, 'bad', '--input', '{"tasks": "set", "attempts": 0}');
    await assert.rejects(bad, ({ stdout }: { stdout: string }) => {
      assert.match(stdout, /evaluationSweep: attempts: expected a whole number from 1 to 1000 attempts, got 0/);
      return true;
    });
  });

  /** Waits for the workflow list, which lags behind the histories. */
  const untilCount = (query: string, isRight: (count: number) => boolean): Promise<boolean> =>
    until(async () => isRight((await stack.server.client.workflow.count(query)).count));
});

function lost(): Error {
  return ApplicationFailure.nonRetryable('the task is gone from the store', 'BlobMissing');
}
