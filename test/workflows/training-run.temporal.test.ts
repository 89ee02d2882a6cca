import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Context } from '@temporalio/activity';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { warmUpProgress } from '../../workers/cli/commands/train/follow-run.ts';
import { groupId, rolloutId, stepId } from '../../workflows/contracts/ids.ts';
import { pauseSignal, resumeSignal, runStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { valueSizes } from '../helpers/temporal/payload-sizes.ts';
import type { Script } from '../helpers/temporal/script.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

const small: RunRequest = { tasks: 'generated:train/1', steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2 };
const halfOfEach = (workflowId: string): number => (workflowId.endsWith('rollout-0') ? 0 : 1);

type MutableScript = { -readonly [Key in keyof Script]: Script[Key] };

describe('a trainingRun', () => {
  let stack: ScriptedStack;
  const script: MutableScript = { reward: halfOfEach };

  before(async () => {
    stack = await startScriptedStack({ script });
  });
  after(async () => {
    await stack?.close();
  });

  const start = (workflowId: string, request: RunRequest) =>
    stack.server.client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId, args: [request] });

  it('makes its steps with one update each, and its sums match', async () => {
    const before = stack.workers.updates.length;
    const status: RunStatus = await (await start('plain', small)).result();
    assert.equal(status.phase, 'done');
    assert.equal(status.step, 3);
    assert.equal(sum(status.groups), status.groupsStarted);
    assert.equal(status.groups['in-flight'], 0);
    assert.equal(sum(status.rollouts), status.rolloutsStarted);
    assert.deepEqual(
      stack.workers.updates.slice(before).map(({ step }) => step),
      [1, 2, 3],
    );
  });

  it('shows the progress of its warm-up from the heartbeats of the activity', async () => {
    const gate = Promise.withResolvers<void>();
    script.prepare = async () => {
      Context.current().heartbeat({ warmUpStep: 3, of: 9 });
      await gate.promise;
    };
    const handle = await start('warming', { ...small, steps: 1 });
    const progress = await until(() => warmUpProgress(handle), Boolean);
    assert.deepEqual(progress, { warmUpStep: 3, of: 9 });
    gate.resolve();
    script.prepare = async () => {};
    await handle.result();
    assert.equal(await warmUpProgress(handle), null);
  });

  it('counts the rewards of flagged rollouts as its input says', async () => {
    Object.assign(script, { reward: () => 1, flags: (id: string) => (id.endsWith('rollout-0') ? ['exit'] : []) });
    const one = { ...small, steps: 1, maxStaleness: 0 };
    const kept: RunStatus = await (await start('kept-flags', one)).result();
    assert.deepEqual([kept.groups['zero-variance'], kept.recentRewards], [2, [1]]);
    const zeroed: RunStatus = await (await start('zeroed-flags', { ...one, onFlag: { exit: 'zero' } })).result();
    assert.deepEqual([zeroed.groups.trained, zeroed.recentRewards, zeroed.flags.zeroed], [2, [0.5], { exit: 2 }]);
    Object.assign(script, { reward: halfOfEach, flags: () => [] });
  });

  it('keeps every value in its histories under 8 KB, however many rollouts a group has', async () => {
    const request: RunRequest = { ...small, steps: 1, groupsPerStep: 1, rolloutsPerGroup: 32, maxStaleness: 0 };
    const { runKey }: RunStatus = await (await start('sizes', request)).result();
    const group = groupId('sizes', runKey, 0);
    const byHand = {
      taskQueue: controlQueue,
      workflowId: 'by-hand',
      args: [{ task: 'scripted:0', rolloutsPerGroup: 32 }],
    };
    await stack.server.client.workflow.execute('group', byHand);
    for (const id of ['sizes', group, 'by-hand', rolloutId(group, 0), stepId('sizes', runKey, 1)]) {
      const sizes = await valueSizes(stack.server.client, id);
      assert.ok(
        sizes.length > 5 && Math.max(...sizes) < 8_192,
        `${id}: largest of ${sizes.length}: ${Math.max(...sizes)}`,
      );
    }
  });

  it('starts no superfluous group if it is strictly on-policy', async () => {
    const status: RunStatus = await (await start('on-policy', { ...small, maxStaleness: 0 })).result();
    assert.equal(status.groupsStarted, 6, 'three steps of two groups');
    assert.equal(status.groups.stale, 0);
  });

  it('gives a terminated group a fate, and continues', async () => {
    const gate = Promise.withResolvers<void>();
    script.agent = () => gate.promise;
    const handle = await start('terminated', { ...small, steps: 1 });
    const status = await until(
      () => handle.query(runStatusQuery),
      ({ inFlight }) => inFlight.length === 2,
    );
    const group = stack.server.client.workflow.getHandle(groupId('terminated', status.runKey, 0));
    await until(() => group.describe().then(Boolean, () => false), Boolean);
    await group.terminate('by the test');
    gate.resolve();
    script.agent = async () => {};
    const end: RunStatus = await handle.result();
    assert.equal(end.step, 1);
    assert.equal(sum(end.groups), end.groupsStarted);
    assert.equal(sum(end.rollouts), end.rolloutsStarted);
    assert.equal(end.groupsStarted, 3);
  });

  it('replaces a group at once that ended while another was admitted', async () => {
    const choosing = Promise.withResolvers<void>();
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let chosen = 0;
    script.choose = async () => {
      chosen += 1;
      // The third choice is for group 2.
      if (chosen === 3) await choosing.promise;
    };
    script.provision = async (id) => {
      const index = Number(/group-(\d+)/.exec(id)?.[1]);
      if (index > 1) return;
      await ends[index]?.promise;
      throw ApplicationFailure.nonRetryable('the daemon is gone', 'SandboxUnavailable');
    };
    const handle = await start('freed', { ...small, steps: 1, maxStaleness: 0 });
    const inFlight = (expected: string) =>
      until(
        () => handle.query(runStatusQuery),
        (status) => status.inFlight.join() === expected,
      );
    await inFlight('0,1');
    ends[0]?.resolve();
    await until(
      async () => chosen,
      (count) => count === 3,
    );
    ends[1]?.resolve();
    await inFlight('2');
    choosing.resolve();
    const end: RunStatus = await handle.result();
    script.choose = async () => {};
    script.provision = async () => {};
    assert.equal(end.groups.infra, 2);
    // A run that waits for a change sets a timer, so there must be none.
    const events = (await handle.fetchHistory()).events ?? [];
    const choices = events.flatMap(({ activityTaskScheduledEventAttributes: scheduled }, position) =>
      scheduled?.activityType?.name === 'chooseTask' ? [position] : [],
    );
    const between = events
      .slice(choices[2], choices[3])
      .filter(({ timerStartedEventAttributes }) => timerStartedEventAttributes);
    assert.equal(choices.length, 4);
    assert.deepEqual(between, []);
  });

  it('pauses and resumes', async () => {
    const gate = Promise.withResolvers<void>();
    script.agent = () => gate.promise;
    const handle = await start('paused', { ...small, steps: 2 });
    await handle.signal(pauseSignal, 'lunch');
    gate.resolve();
    script.agent = async () => {};
    const paused = await until(
      () => handle.query(runStatusQuery),
      ({ phase }) => phase === 'paused' || phase === 'done',
    );
    assert.equal(paused.pausedBecause, 'lunch');
    await handle.signal(resumeSignal);
    assert.equal(((await handle.result()) as RunStatus).step, 2);
  });

  it('pauses itself when nearly all rollouts end as infra, and continues when that is fixed', async () => {
    script.provision = async () => {
      throw ApplicationFailure.nonRetryable('the daemon is gone', 'SandboxUnavailable');
    };
    const handle = await start('self-paused', { ...small, rolloutsPerGroup: 4 });
    const paused = await until(
      () => handle.query(runStatusQuery),
      ({ phase }) => phase === 'paused',
    );
    assert.match(paused.pausedBecause ?? '', /of the last \d+ rollouts ended as infra/);
    assert.equal(paused.rollouts.infra + paused.inFlight.length * 4, paused.rolloutsStarted);
    script.provision = async () => {};
    await handle.signal(resumeSignal);
    const end: RunStatus = await handle.result();
    assert.equal(end.step, 3);
    assert.equal(sum(end.groups), end.groupsStarted);
    assert.equal(sum(end.rollouts), end.rolloutsStarted);
    assert.ok(end.groups.infra > 0);
  });

  it("pauses when the next task can't be determined, and continues when that is fixed", async () => {
    script.choose = async () => {
      throw ApplicationFailure.nonRetryable('the directory is gone', 'UnknownTask');
    };
    const handle = await start('no-tasks', small);
    const paused = await until(
      () => handle.query(runStatusQuery),
      ({ phase }) => phase === 'paused',
    );
    assert.match(paused.pausedBecause ?? '', /group \d+ could not be started: the directory is gone/);
    script.choose = async () => {};
    await handle.signal(resumeSignal);
    const end: RunStatus = await handle.result();
    assert.equal(end.step, 3);
    assert.equal(sum(end.groups), end.groupsStarted);
    assert.equal(sum(end.rollouts), end.rolloutsStarted);
  });

  it('pauses when a step fails, and repeats it on the same batch', async () => {
    script.update = async () => {
      throw ApplicationFailure.nonRetryable('out of memory', 'TrainerRefused');
    };
    const before = stack.workers.updates.length;
    const handle = await start('failed-step', { ...small, steps: 2 });
    await until(
      () => handle.query(runStatusQuery),
      ({ phase, inFlight }) => phase === 'paused' && inFlight.length === 0,
    );
    script.update = async () => {};
    await handle.signal(resumeSignal);
    const end: RunStatus = await handle.result();
    const [failed, again, next] = stack.workers.updates.slice(before);
    assert.deepEqual(again, failed);
    assert.equal(next?.step, 2);
    assert.equal(sum(end.groups), end.groupsStarted);
  });

  it('leaves nothing behind when it is cancelled', async () => {
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    script.agent = () => {
      begun += 1;
      return gate.promise;
    };
    const handle = await start('cancelled', small);
    await until(
      async () => begun,
      (agents) => agents > 0,
    );
    await handle.cancel();
    await assert.rejects(handle.result(), WorkflowFailedError);
    gate.resolve();
    script.agent = async () => {};
    assert.equal((await handle.describe()).status.name, 'CANCELLED');
    const end = await handle.query(runStatusQuery);
    assert.equal(end.groups.cancelled, end.groupsStarted);
    // Closing their sessions told what they had used. Only those that never began have no cost.
    const { rollouts, promptTokens = 0 } = end.cost?.rollouts.cancelled ?? {};
    assert.equal(rollouts, end.rollouts.cancelled);
    assert.ok(promptTokens >= 40 * begun, JSON.stringify(end.cost));
    // Groups report before they end, and the list lags behind.
    const query = `TemperRun="cancelled" AND ExecutionStatus="Running"`;
    const deadline = Date.now() + 60_000;
    const { count: left } = await until(
      () => stack.server.client.workflow.count(query),
      ({ count }) => count === 0 || Date.now() > deadline,
    );
    assert.equal(left, 0);
  });

  it('refuses a direct start of a step by name', async () => {
    const direct = stack.server.client.workflow.execute('trainingStep', {
      taskQueue: controlQueue,
      workflowId: 'direct',
      args: [{}],
    });
    await assert.rejects(
      direct,
      (error) => error instanceof WorkflowFailedError && /started by a trainingRun/.test(String(error.cause)),
    );
  });
});

async function until<Value>(read: () => Promise<Value>, good: (value: Value) => boolean): Promise<Value> {
  for (;;) {
    const value = await read();
    if (good(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
