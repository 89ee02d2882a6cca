import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findStep } from '../../infra/report/run-records.ts';
import { groupId } from '../../workflows/contracts/ids.ts';
import { resumeSignal, runStatusQuery, stopSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { Script } from '../helpers/temporal/script.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until as untilWithin } from '../helpers/until.ts';

/** Steps take long on a busy machine. */
const limitMs = 240_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

/** The rollouts of group 1 run until the test ends them, while those of the other groups continue. */
describe('a stale group', () => {
  let stack: ScriptedStack;
  let gate = Promise.withResolvers<void>();
  const late = (workflowId: string): boolean => workflowId.includes('/group-1/');
  const request: RunRequest = {
    tasks: 'generated:train/1',
    groupsPerStep: 1,
    rolloutsPerGroup: 2,
    maxStaleness: 1,
  };
  const play = (rest: Partial<Script>): void => {
    gate.resolve();
    gate = Promise.withResolvers<void>();
    const reward = (workflowId: string): number => (workflowId.endsWith('rollout-0') ? 0 : 1);
    const agent = async (workflowId: string): Promise<void> => {
      if (late(workflowId)) await gate.promise;
    };
    stack.script = { reward, agent, ...rest };
  };
  const start = (workflowId: string, own: Partial<RunRequest>) =>
    stack.server.client.workflow.start('trainingRun', {
      taskQueue: controlQueue,
      workflowId,
      args: [{ ...request, ...own }],
    });

  before(async () => {
    stack = await startScriptedStack();
  });
  after(async () => {
    gate.resolve();
    await stack?.close();
  });

  it('is waited for by default: the status names it, and it is trained without exceeding the bound', async () => {
    const versions = (): never => assert.fail('expected no request');
    play({ versions, version: (workflowId) => (late(workflowId) ? 0 : (stack.workers.published.at(-1) ?? 0)) });
    const handle = await start('waited-for', { steps: 4 });
    const waiting = await until(async () => {
      const status: RunStatus = await handle.query(runStatusQuery);
      return status.waitsFor.length > 0 && status;
    });
    assert.deepEqual([waiting.waitsFor, waiting.phase, waiting.pausedBecause], [[1], 'running', null]);
    assert.equal(waiting.step, 1, 'the group is of version 0, and would be too stale for the third step');
    gate.resolve();
    const end: RunStatus = await handle.result();
    assert.deepEqual([end.step, end.waitsFor, end.groups.trained, end.groupsStarted], [4, [], 4, 4]);
    const staleness = await Promise.all(
      [1, 2, 3, 4].map(async (step) => (await findStep(stack.workers.records, end.runKey, step))?.result.staleness),
    );
    assert.equal(Math.max(...staleness.map((one) => one ?? Number.NaN)), 1);
  });

  it('never comes about in a run of which 30 % of the tasks take six times longer, and all of them are trained', async () => {
    const isSlow = (group: number): boolean => group % 10 < 3;
    const begun = new Map<string, number>();
    const agent = async (workflowId: string): Promise<void> => {
      begun.set(workflowId, stack.workers.published.at(-1) ?? 0);
      const group = Number(/\/group-(\d+)\//.exec(workflowId)?.[1]);
      await sleep(isSlow(group) ? 1_800 : 300);
    };
    play({ agent, version: (workflowId) => begun.get(workflowId) ?? 0 });
    const handle = await start('six-times', { steps: 5, groupsPerStep: 4 });
    const end: RunStatus = await handle.result();
    const records = await Promise.all([1, 2, 3, 4, 5].map((step) => findStep(stack.workers.records, end.runKey, step)));
    const trained = records.flatMap((record) => record?.trained ?? []);
    assert.deepEqual([end.groupsStarted, end.groups.trained, end.groups.stale], [20, 20, 0]);
    assert.equal(trained.filter(isSlow).length / trained.length, 0.3);
    const staleness = records.map((record) => record?.result.staleness ?? Number.NaN);
    assert.equal(Math.max(...staleness), 1, 'expected groups of an earlier version, and none beyond the bound');
  });

  it('is stopped as soon as one of its tokens is too old, and all its rollouts end as stale', async () => {
    const asked: (readonly number[])[] = [];
    const versions = (groups: readonly number[]): readonly (number | null)[] => {
      asked.push(groups);
      // At the first request it has not sampled yet, so it may still be in time.
      return groups.map(() => (asked.length === 1 ? null : 0));
    };
    play({ versions });
    const handle = await start('stopped', { steps: 4, onStale: 'cancel' });
    const end: RunStatus = await handle.result();
    assert.equal(end.step, 4);
    assert.deepEqual(asked.slice(0, 2), [[1], [1]]);
    assert.equal(end.groups.stale, 1);
    assert.equal(end.rollouts.stale, 2);
    assert.equal(end.rollouts.cancelled, 0);
    const { stale } = end.cost?.rollouts ?? {};
    assert.deepEqual([stale?.rollouts, stale?.promptTokens, stale?.unknown], [2, 80, 0], 'what they cost is known');
    const report = (await stack.workers.records.find(end.runKey, 'group-1')) as {
      readonly rollouts: readonly { readonly outcome: string; readonly rollout: string }[];
    };
    assert.deepEqual(
      report.rollouts.map(({ outcome }) => outcome),
      ['stale', 'stale'],
    );
    for (const { rollout } of report.rollouts) assert.ok(stack.workers.released.includes(rollout), rollout);
  });

  it('runs to its end with withhold, is scored, and is not trained', async () => {
    const versions = (): never => assert.fail('expected no request');
    play({ versions, version: (workflowId) => (late(workflowId) ? 0 : (stack.workers.published.at(-1) ?? 0)) });
    const handle = await start('withheld', { steps: 3, onStale: 'withhold' });
    await until(async () => ((await handle.query(runStatusQuery)) as RunStatus).step === 2);
    gate.resolve();
    const end: RunStatus = await handle.result();
    assert.equal(end.step, 3);
    assert.equal(end.groups.withheld, 1);
    assert.equal(end.groups.trained, 3);
    assert.equal(end.rollouts.scored, end.rolloutsStarted);
    assert.equal(end.groups.stale, 0);
  });

  it('is no reason to pause if it is stopped by hand', async () => {
    let atWork = 0;
    const agent = (): Promise<void> => {
      atWork += 1;
      return atWork > 2 ? Promise.resolve() : gate.promise;
    };
    play({ agent });
    const handle = await start('by-hand', { steps: 1, pauseAtStaleGroups: 1 });
    await until(() => atWork === 2);
    const { runKey }: RunStatus = await handle.query(runStatusQuery);
    await stack.server.client.workflow.getHandle(groupId('by-hand', runKey, 0)).signal(stopSignal, 'stale');
    const ended = await until(async () => {
      const status: RunStatus = await handle.query(runStatusQuery);
      return (status.phase === 'paused' || status.phase === 'done') && status;
    });
    assert.deepEqual([ended.pausedBecause, ended.step, ended.groups.stale], [null, 1, 1]);
  });

  it('is a reason to pause if all are, also again after a resume, until engines serve the weights of the run', async () => {
    const agent = async (): Promise<void> => {};
    play({ agent, version: () => 0 });
    const handle = await start('never-trained', { steps: 3, maxStaleness: 0 });
    const pausedAfter = (stale: number): Promise<RunStatus> =>
      until(async () => {
        const status: RunStatus = await handle.query(runStatusQuery);
        return status.phase === 'paused' && status.groups.stale === stale && status;
      });
    const paused = await pausedAfter(8);
    assert.match(
      paused.pausedBecause ?? '',
      /^no step was made while 8 groups were too stale to train on \(the last was sampled by version 0, the policy is at 1\); check/,
    );
    assert.deepEqual(
      [paused.step, paused.groupsStarted, paused.inFlight],
      [1, 9, []],
      'it starts no group for nothing',
    );
    await handle.signal(resumeSignal);
    await pausedAfter(16);
    play({ agent });
    await handle.signal(resumeSignal);
    const end: RunStatus = await handle.result();
    assert.deepEqual([end.step, end.groups.trained, end.groups.stale, end.groupsStarted], [3, 3, 16, 19]);
  });
});
