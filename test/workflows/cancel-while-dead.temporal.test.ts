import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { regradeStatusQuery, stopSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeStatus } from '../../workflows/contracts/regrade.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';
import type { Script } from '../helpers/temporal/script.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';

/** An activity whose worker is dead sends no heartbeat and never ends. Its time-out is shorter here than in production. */
describe('a cancel while the worker of an activity is dead', () => {
  let stack: ScriptedStack;
  let begun = Promise.withResolvers<void>();
  let end = Promise.withResolvers<void>();
  const dead = (): Promise<void> => {
    begun.resolve();
    return end.promise;
  };
  const play = (script: Partial<Script>): void => {
    stack.script = { reward: () => 1, ...script };
  };
  const start = (type: string, workflowId: string, input: object): Promise<WorkflowHandle> =>
    stack.server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
  const statusOf = async (workflowId: string): Promise<string> =>
    (await stack.server.client.workflow.getHandle(workflowId).describe()).status.name;

  before(async () => {
    const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
      source.replaceAll(/heartbeatTimeout: '\d+s'/g, "heartbeatTimeout: '3s'"),
    );
    stack = await startScriptedStack({ workflowBundle });
  });
  beforeEach(() => {
    end.resolve();
    begun = Promise.withResolvers<void>();
    end = Promise.withResolvers<void>();
  });
  after(async () => {
    end.resolve();
    await stack?.close();
  });

  for (const stage of ['provision', 'evaluate'] as const) {
    it(`ends a rollout that is stopped at ${stage} with the outcome of the stop`, async () => {
      play({ [stage]: dead });
      const handle = await start('rollout', stage, { task: 'scripted:0' });
      await begun.promise;
      await handle.signal(stopSignal, 'stale');
      const { rollout, outcome, failure, epochs }: RolloutResult = await handle.result();
      assert.deepEqual([outcome, failure, epochs], ['stale', null, 1]);
      assert.equal(stack.workers.released.includes(rollout), true);
    });
  }

  it('cancels a rollout that is cancelled at its evaluation', async () => {
    play({ evaluate: dead });
    const handle = await start('rollout', 'cancelled', { task: 'scripted:0' });
    await begun.promise;
    await handle.cancel();
    await assert.rejects(handle.result());
    assert.equal(await statusOf('cancelled'), 'CANCELLED');
  });

  it('leaves a rollout of a regrade ungraded instead of failed', async () => {
    play({});
    const sweep = await start('evaluationSweep', 'sweep', { tasks: 'set', count: 1, concurrency: 1 });
    await sweep.result();
    play({ evaluate: dead });
    const handle = await start('regrade', 'regrade', { run: 'sweep', concurrency: 1 });
    await begun.promise;
    await handle.cancel();
    await assert.rejects(handle.result());
    const { states, pausedBecause }: RegradeStatus = await handle.query(regradeStatusQuery);
    assert.deepEqual([states.failed, pausedBecause], [0, null]);
    assert.equal(await statusOf('regrade'), 'CANCELLED');
  });
});
