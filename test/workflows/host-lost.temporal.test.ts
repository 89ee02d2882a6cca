import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { tellHostLost } from '../../infra/temporal/tell-host-lost.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

describe('a rollout whose host is declared lost', () => {
  let stack: ScriptedStack;
  before(async () => {
    stack = await startScriptedStack();
  });
  after(() => stack?.close());

  it('leaves it at once, does not wait for its clean-up, and begins again', async () => {
    let agents = 0;
    stack.script.agent = async () => {
      agents += 1;
      if (agents === 1) await new Promise<never>(() => {});
    };
    const { client } = stack.server;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'left', args });
    await until(async () => agents === 1 && (await handle.query(rolloutStatusQuery)).host === 'scripted');
    assert.equal(await tellHostLost(client, 'another'), 0);
    // The list of workflows follows a moment later.
    await until(async () => (await tellHostLost(client, 'scripted')) === 1);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, agents], ['scored', 2, 2]);
    // What the first session used went with its host.
    assert.deepEqual([result.cost?.promptTokens, result.cost?.incomplete], [4, true]);
    assert.deepEqual(stack.workers.released, [result.rollout]);
  });
});
