import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { readRunRecords } from '../../infra/report/run-records.ts';
import { pauseSignal, resumeSignal, runStatusQuery, skipStepUpdate } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { RunState } from '../../workflows/contracts/run-state.ts';
import type { Script } from '../helpers/temporal/script.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

const small: RunRequest = { tasks: 'generated:train/1', steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2 };
const halfOfEach = (workflowId: string): number => (workflowId.endsWith('rollout-0') ? 0 : 1);

describe('a trainingRun that continues as new often', () => {
  let stack: ScriptedStack;
  const script: { -readonly [Key in keyof Script]: Script[Key] } = { reward: halfOfEach };

  before(async () => {
    stack = await startScriptedStack({ script, suggestContinueAsNewAt: 40 });
  });
  after(async () => {
    await stack?.close();
  });

  const start = (workflowId: string, request: RunRequest) =>
    stack.server.client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId, args: [request] });

  /** Waits until a run is paused, and no group is in flight. */
  const untilPaused = (handle: Pick<WorkflowHandle, 'query'>): Promise<RunStatus> =>
    until(async () => {
      const status = await handle.query(runStatusQuery);
      return status.phase === 'paused' && status.inFlight.length === 0 && status;
    });

  it('loses nothing', async () => {
    const before = stack.workers.updates.length;
    const handle = await start('carried', { ...small, steps: 5 });
    const status: RunStatus = await handle.result();
    assert.equal(status.step, 5);
    assert.equal(sum(status.groups), status.groupsStarted);
    assert.equal(sum(status.rollouts), status.rolloutsStarted);
    assert.deepEqual(
      stack.workers.updates.slice(before).map(({ step }) => step),
      [1, 2, 3, 4, 5],
    );
    // The list lags behind the history.
    await until(async () => (await stack.server.client.workflow.count('WorkflowId="carried"')).count >= 3);
  });

  it('pauses when version 0 cannot be made, and continues when that is fixed', async () => {
    script.prepare = async () => {
      throw ApplicationFailure.nonRetryable('out of memory', 'TrainerRefused');
    };
    const handle = await start('unprepared', { ...small, steps: 1 });
    const { pausedBecause } = await untilPaused(handle);
    assert.match(pausedBecause ?? '', /version 0 could not be made: out of memory/);
    script.prepare = async () => {};
    await handle.signal(resumeSignal);
    assert.equal(((await handle.result()) as RunStatus).step, 1);
  });

  it('skips a step that has failed when asked to, and trains the next one', async () => {
    script.update = async () => {
      throw ApplicationFailure.nonRetryable('out of memory', 'TrainerRefused');
    };
    const handle = await start('skipped-step', { ...small, steps: 2, maxStaleness: 0 });
    const skip = () => handle.executeUpdate(skipStepUpdate);
    await assert.rejects(skip(), (error: Error) => /without a failed step|makes a step/.test(String(error.cause)));
    assert.match((await untilPaused(handle)).pausedBecause ?? '', /step 1 failed: out of memory; .* --skip-step/);
    script.skip = async () => {
      throw ApplicationFailure.nonRetryable('its update is made', 'TrainerRefused');
    };
    assert.deepEqual(await skip(), { step: 1, groups: 2 });
    assert.match((await untilPaused(handle)).pausedBecause ?? '', /step 1 could not be skipped: its update is made/);
    script.skip = async () => {};
    script.update = async () => {};
    await handle.signal(pauseSignal, 'lunch');
    assert.deepEqual(await skip(), { step: 1, groups: 2 });
    const end: RunStatus = await handle.result();
    assert.deepEqual([end.step, end.policyVersion, end.skippedSteps], [2, 2, [1]]);
    assert.deepEqual([end.groups.skipped, end.groups.trained], [2, 2]);
    assert.equal(sum(end.groups), end.groupsStarted);
    const records = await readRunRecords(stack.workers.records, end.runKey);
    assert.deepEqual(
      records.steps.map(({ result, trained, dropped }) => [result.skippedBecause, trained, dropped]),
      [
        ['out of memory', [], [0, 1].map((index) => [index, 'skipped'])],
        [null, [2, 3], []],
      ],
    );
  });

  it('counts the hours of its budget from the start of its first execution', async () => {
    const handle = await start('timed', { ...small, steps: 4 });
    const status: RunStatus = await handle.result();
    const first = await stack.server.client.workflow.getHandle('timed', status.runKey).describe();
    const last = await handle.describe();
    const states = await carriedStates('timed');
    assert.ok(states.length >= 2, `expected the run to continue as new twice, got ${states.length}`);
    const [startedAt = Number.NaN, ...others] = new Set(states.map((state) => state.startedAt));
    assert.deepEqual(others, []);
    assert.ok(Math.abs(startedAt - first.startTime.getTime()) < 1_000, `${startedAt} is not the start of the run`);
    const usedMs = (status.budget?.used.wallHours ?? 0) * 3_600_000;
    assert.ok(usedMs > last.startTime.getTime() - startedAt, `expected more than ${usedMs} ms`);
  });

  it('pauses at its budget, continues with a higher one, and counts what was thrown away', async () => {
    stack.script.agent = async (id) => {
      if (!id.endsWith('group-0/rollout-0')) return;
      throw ApplicationFailure.nonRetryable('the daemon is gone', 'SandboxUnavailable');
    };
    const handle = await start('budgeted', { ...small, budget: { rollouts: 7 } });
    const paused = await until(async () => {
      const status = await handle.query(runStatusQuery);
      return status.phase === 'paused' && status;
    }, 240_000);
    stack.script.agent = async () => {};
    assert.match(paused.pausedBecause ?? '', /6 of 7 rollouts; raise it with `temper budget budgeted rollouts=N`$/);
    assert.deepEqual([paused.step, paused.inFlight], [1, []], 'it makes the step that is paid for');
    const set = (limits: object) => handle.executeUpdate('setBudget', { args: [limits] });
    await assert.rejects(set({ rollouts: 0 }), (error: Error) => /expected a whole number/.test(String(error.cause)));
    assert.deepEqual(await set({ rollouts: null, tokens: 1_000 }), { tokens: 1_000 });
    const status: RunStatus = await handle.result();
    assert.deepEqual([status.step, status.rolloutsStarted], [3, 14]);
    const { scored, infra } = status.cost?.rollouts ?? {};
    assert.deepEqual([scored?.rollouts, scored?.promptTokens, scored?.sampledTokens], [13, 52, 26]);
    // Closing its session tells what the lost rollout had used.
    assert.deepEqual([infra?.rollouts, infra?.promptTokens, infra?.sampledTokens, infra?.unknown], [1, 40, 20, 0]);
    assert.ok((infra?.sandboxSeconds.local ?? 0) > 0 && (status.cost?.trainerSeconds ?? 0) > 0);
    assert.deepEqual([status.budget?.limits, status.budget?.used.tokens], [{ tokens: 1_000 }, 138]);
  });

  /** Returns the states that the executions of a run began with, newest first. The first execution has none. */
  async function carriedStates(workflowId: string, runId?: string): Promise<readonly RunState[]> {
    const { events } = await stack.server.client.workflow.getHandle(workflowId, runId).fetchHistory();
    const started = events?.[0]?.workflowExecutionStartedEventAttributes;
    const earlier = started?.continuedExecutionRunId;
    if (!earlier) return [];
    const state: RunState = JSON.parse(Buffer.from(started.input?.payloads?.[1]?.data ?? []).toString());
    return [state, ...(await carriedStates(workflowId, earlier))];
  }

  it('counts groups that are too stale over its executions, and pauses', async () => {
    stack.script = { reward: halfOfEach, version: () => 0 };
    const handle = await start('never-trained', { ...small, groupsPerStep: 1, maxStaleness: 0 });
    const paused = await until(async () => {
      const status = await handle.query(runStatusQuery);
      return status.phase === 'paused' && status;
    }, 240_000);
    assert.match(paused.pausedBecause ?? '', /no step was made while 8 groups were too stale/);
    assert.deepEqual([paused.step, paused.groups.stale], [1, 8]);
    const counts = (await carriedStates('never-trained')).map(({ staleGroups }) => staleGroups?.count ?? 0);
    assert.ok(
      counts.some((count) => count > 0 && count < 8),
      `expected some of the 8 groups to be carried, got ${counts.join(', ')}`,
    );
    stack.script = { reward: halfOfEach };
    await handle.signal(resumeSignal);
    const status: RunStatus = await handle.result();
    assert.deepEqual([status.step, status.groups.trained, status.groups.stale], [3, 3, 8]);
  });

  it('starts no group during a step once its history is long, and continues after the step', async () => {
    const { promise: trained, resolve: train } = Promise.withResolvers<void>();
    stack.script = {
      reward: halfOfEach,
      update: () => trained,
      agent: async (id) => {
        if (id.endsWith('group-0/rollout-0') || !id.endsWith('rollout-0')) return;
        throw ApplicationFailure.nonRetryable('the daemon is gone', 'SandboxUnavailable');
      },
    };
    const handle = await start('long-step', { ...small, steps: 2, groupsPerStep: 1, maxStaleness: 1 });
    const waiting = await until(async () => {
      const status = await handle.query(runStatusQuery);
      return status.groupsStarted > 2 && status.inFlight.length === 0 && status;
    }, 240_000);
    assert.deepEqual([waiting.step, waiting.phase], [0, 'running']);
    stack.script = { reward: halfOfEach };
    train();
    const status: RunStatus = await handle.result();
    assert.deepEqual([status.step, status.groups.trained, status.groups.infra], [2, 2, waiting.groups.infra]);
    assert.ok((await carriedStates('long-step')).length > 0, 'expected it to continue as new');
  });

  it('keeps the counts of flagged rollouts', async () => {
    stack.script.flags = (id) =>
      id.endsWith('rollout-0') ? ['tests', 'exit'] : id.endsWith('group-1/rollout-1') ? ['exit'] : [];
    const handle = await start('flagged', { ...small, maxStaleness: 0 });
    const status: RunStatus = await handle.result();
    assert.equal(status.rolloutsStarted, 12);
    assert.deepEqual(status.flags, { rollouts: 7, tricks: { tests: 6, exit: 7 } });
    const { details } = await handle
      .query('__temporal_workflow_metadata')
      .then((found) => ({ details: JSON.stringify(found) }));
    assert.match(details, /flagged: 7 rollouts: exit 7, tests 6/);
  });
});
