import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { resumeSignal, runStatusQuery, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { outcomes as allOutcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest, SweepResult, SweepStatus } from '../../workflows/contracts/sweep.ts';
import { resetToFirstTask } from '../helpers/temporal/manual-worker.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

/** The agents of rollouts whose id has the text `held` names work until the test ends them. */
describe('a workflow that is reset', () => {
  let stack: ScriptedStack;
  let held = Promise.withResolvers<void>();
  let atWork: string[] = [];
  const hold = (isHeld: (workflowId: string) => boolean): void => {
    held = Promise.withResolvers();
    atWork = [];
    const { promise } = held;
    const agent = async (workflowId: string): Promise<void> => {
      if (!isHeld(workflowId)) return;
      atWork.push(workflowId);
      await promise;
    };
    stack.script = { reward: (workflowId) => (workflowId.endsWith('-0') ? 0 : 1), agent };
  };
  /** Starts a workflow, and resets it to its beginning once `isDue`. Returns the handle of what continues. */
  async function startAndReset(type: string, workflowId: string, input: object, isDue: () => Promise<boolean>) {
    const { client } = stack.server;
    const begun = await client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
    await until(isDue);
    await resetToFirstTask(stack.server, workflowId, begun.firstExecutionRunId);
    const handle = client.workflow.getHandle(workflowId);
    assert.notEqual((await handle.describe()).runId, begun.firstExecutionRunId);
    return handle;
  }
  const runStatus = (id: string): Promise<RunStatus> =>
    stack.server.client.workflow.getHandle(id).query(runStatusQuery);
  const sweepStatus = (id: string): Promise<SweepStatus> =>
    stack.server.client.workflow.getHandle(id).query(sweepStatusQuery);
  const request: RunRequest = { tasks: 'generated:train/1', groupsPerStep: 2, rolloutsPerGroup: 2, maxStaleness: 0 };

  before(async () => {
    stack = await startScriptedStack();
  });
  after(async () => {
    held.resolve();
    await stack?.close();
  });

  it('continues as a run with the groups that it started, also with those that ended meanwhile', async () => {
    hold((workflowId) => workflowId.includes('/group-0/'));
    const isDue = async () => atWork.length === 2 && (await runStatus('reset-run')).inFlight.join() === '0';
    const handle = await startAndReset('trainingRun', 'reset-run', { ...request, steps: 1 }, isDue);
    await until(async () => {
      const { groupsStarted, inFlight } = await runStatus('reset-run');
      return groupsStarted === 2 && inFlight.join() === '0';
    });
    held.resolve();
    const end: RunStatus = await handle.result();
    assert.deepEqual([end.step, end.groups.trained, end.rollouts.scored, end.rolloutsStarted], [1, 2, 4, 4]);
    assert.equal(atWork.length, 2, 'no agent works twice');
  });

  it('pauses as a run that would make a finished step again, and says why', async () => {
    hold((workflowId) => workflowId.includes('/group-2/'));
    const earlier = stack.workers.updates.length;
    const isDue = async () => atWork.length === 2 && (await runStatus('before-step')).step === 1;
    const handle = await startAndReset('trainingRun', 'before-step', { ...request, steps: 2 }, isDue);
    const paused = await until(async () => {
      const status = await runStatus('before-step');
      return status.phase === 'paused' && status;
    });
    assert.match(
      paused.pausedBecause ?? '',
      /^step 1 exists already: the run was reset to before .*; reset the run to/,
    );
    const updates = stack.workers.updates.slice(earlier).filter(({ step }) => step === 1);
    assert.equal(updates.length, 1);
    await handle.signal(resumeSignal);
    await until(async () => (await runStatus('before-step')).phase === 'paused');
    held.resolve();
    await handle.cancel();
    await assert.rejects(handle.result(), /cancelled/i);
  });

  it('continues as a sweep with the rollouts that it started, and counts each once', async () => {
    hold((workflowId) => workflowId.includes('/rollout-0-'));
    const input: SweepRequest = { tasks: 'set', count: 3, concurrency: 3 };
    const isDue = async () => atWork.length === 1 && (await sweepStatus('reset-sweep')).ended === 2;
    const handle = await startAndReset('evaluationSweep', 'reset-sweep', input, isDue);
    await until(async () => (await sweepStatus('reset-sweep')).ended === 2);
    held.resolve();
    const result: SweepResult = await handle.result();
    assert.deepEqual([result.counted, result.endedEarly, atWork.length], [3, null, 1]);
  });

  it('ends as a rollout with one outcome, which its group gets', async () => {
    hold(() => true);
    const { client } = stack.server;
    const input = { task: 'generated:test/1/0', rolloutsPerGroup: 1 };
    const options = { taskQueue: controlQueue, workflowId: 'of-reset', args: [input] };
    const group = await client.workflow.start('group', options);
    await until(() => atWork.length === 1);
    const rollout = client.workflow.getHandle('of-reset/rollout-0');
    const { runId } = await rollout.describe();
    await resetToFirstTask(stack.server, 'of-reset/rollout-0', runId);
    await until(() => atWork.length === 2);
    held.resolve();
    const result: RolloutResult = await rollout.result();
    assert.deepEqual([result.rollout, result.outcome, result.epochs], [runId, 'scored', 1]);
    const { outcomes } = await group.result();
    assert.deepEqual(outcomes, { ...zeroCount(allOutcomes), scored: 1 });
  });
});
