import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { GroupSummary } from '../../workflows/contracts/group.ts';
import { runStatusQuery, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { bundleChanged, withoutHeartbeats } from '../helpers/temporal/changed-workflows.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

/**
 * The server drops a cancel that overtakes the start of its child. A test can't force this, so these changed workflows start
 * their children in a scope that no cancel reaches, which has the same effect.
 */
const losing = (start: 'startChild' | 'executeChild') => (module: string) =>
  module.replaceAll(
    new RegExp(`\\(0,(\\w+)\\.${start}\\)\\(`, 'g'),
    (_, sdk) => `((...words) => ${sdk}.CancellationScope.nonCancellable(() => ${sdk}.${start}(...words)))(`,
  );

/** Makes all intervals between looks after cancelled work, and the first one between cancels, that short. */
const intervalMs = 200;
const shortIntervals = (module: string): string =>
  withoutHeartbeats(module).replaceAll(
    /(cancelAgainFirstMs|cancelAgainMostMs|cancelledLookMostMs) = [\d_]+/g,
    `$1 = ${intervalMs}`,
  );

describe('a cancel that is lost', () => {
  /** Lets agents work until they are cancelled; returns a function that counts those that have begun. */
  function neverEnding(stack: ScriptedStack): () => number {
    let begun = 0;
    const agent = (): Promise<void> => {
      begun += 1;
      return new Promise(() => undefined);
    };
    stack.script = { reward: () => 1, agent };
    return () => begun;
  }

  async function cancel(stack: ScriptedStack, handle: WorkflowHandle, isAtWork: () => boolean): Promise<void> {
    await until(isAtWork);
    await handle.cancel();
    await handle.result().catch((error) => assert.match(error.message, /cancelled/i));
    await until(async () => (await stack.server.client.workflow.count('ExecutionStatus="Running"')).count === 0);
  }

  it('is repeated for the rollouts of a sweep', async () => {
    await using stack = await stackWith('sweep/rollouts.ts', 'startChild');
    const begun = neverEnding(stack);
    const handle = await stack.start('evaluationSweep', { tasks: 'set', count: 3, concurrency: 3 });
    await cancel(stack, handle, () => begun() === 3);
    assert.equal((await handle.query(sweepStatusQuery)).outcomes.cancelled, 3);
  });

  it('is repeated for the rollouts of a group', async () => {
    await using stack = await stackWith('group.ts', 'startChild');
    const begun = neverEnding(stack);
    const handle = await stack.start('group', { task: 'scripted:0', rolloutsPerGroup: 2 });
    await cancel(stack, handle, () => begun() === 2);
    const { outcomes }: GroupSummary = await handle.result();
    assert.equal(outcomes.cancelled, 2);
  });

  it('is repeated for the step of a run', async () => {
    await using stack = await stackWith('run/stepper.ts', 'executeChild');
    let updating = false;
    // The scripted update does not observe its cancel.
    const { promise: untilCancelled, resolve: letGo } = Promise.withResolvers<void>();
    stack.script = {
      reward: (id) => (id.endsWith('0') ? 1 : 0),
      update: () => {
        updating = true;
        return untilCancelled;
      },
    };
    const handle = await stack.start('trainingRun', {
      tasks: 'generated:train/1',
      steps: 1,
      groupsPerStep: 1,
      rolloutsPerGroup: 2,
    });
    await cancel(stack, handle, () => updating).finally(letGo);
    assert.equal((await handle.query(runStatusQuery)).step, 0);
  });

  it('is repeated at ever longer intervals, which keeps histories short', async () => {
    await using stack = await stackOf(await bundleChanged('activity-options.ts', shortIntervals));
    const { promise: untilEvaluated, resolve: letGo } = Promise.withResolvers<void>();
    using ending = new DisposableStack();
    ending.defer(letGo);
    let evaluating = 0;
    // Evaluations are in progress, and do not observe their cancel.
    const evaluate = (): Promise<void> => {
      evaluating += 1;
      return untilEvaluated;
    };
    stack.script = { reward: () => 1, evaluate };
    const group = await stack.start('group', { task: 'scripted:0', rolloutsPerGroup: 2 });
    const run = await stack.start('trainingRun', {
      tasks: 'generated:train/1',
      steps: 1,
      groupsPerStep: 1,
      rolloutsPerGroup: 2,
    });
    await until(() => evaluating >= 4);
    for (const handle of [group, run]) {
      await handle.cancel();
      const events = await until(async () => {
        const { events } = await handle.fetchHistory();
        const looks = events?.filter((one) => one.timerFiredEventAttributes).length ?? 0;
        return looks >= 12 && (events ?? []);
      });
      const cancels = events.flatMap(({ eventTime, ...event }) => {
        const asked = event.requestCancelExternalWorkflowExecutionInitiatedEventAttributes;
        return asked ? [{ id: asked.workflowExecution?.workflowId, atMs: tsToMs(eventTime) }] : [];
      });
      const ofFirst = cancels.filter(({ id }) => id === cancels[0]?.id);
      const lastedMs = (ofFirst.at(-1)?.atMs ?? 0) - (ofFirst[0]?.atMs ?? 0);
      // Each interval is twice the one before; one more cancel comes from the scope, and one before the first interval.
      const most = 3 + Math.ceil(Math.log2(1 + lastedMs / intervalMs));
      const { length } = ofFirst;
      assert.ok(length > 2 && length <= most, `expected 3 to ${most} cancels in ${lastedMs} ms, got ${length}`);
    }
    letGo();
    await Promise.allSettled([group.result(), run.result()]);
  });

  const stackWith = async (file: string, start: 'startChild' | 'executeChild') =>
    stackOf(await bundleChanged(file, losing(start)));

  async function stackOf(workflowBundle: { readonly code: string }) {
    const stack = await startScriptedStack({ workflowBundle });
    const { client } = stack.server;
    return Object.assign(stack, {
      start: (type: string, input: object) =>
        client.workflow.start(type, { taskQueue: controlQueue, workflowId: type, args: [input] }),
      [Symbol.asyncDispose]: () => stack.close(),
    });
  }
});
