import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';

describe('rollout', () => {
  let rollouts: Rollouts;

  before(async () => {
    rollouts = await startRollouts();
  });
  after(() => rollouts?.close());

  it('scores 1 for the reference solution and 0 for doing nothing', async () => {
    const task = 'generated:train/1/0';
    const [oracle, nop] = await Promise.all([
      rollouts.run('oracle', { task, agent: 'oracle' }),
      rollouts.run('nop', { task, agent: 'nop' }),
    ]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 1], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 0], JSON.stringify(nop));
    assert.ok(JSON.stringify(oracle).length < 8192);
    assert.deepEqual(await rollouts.sandboxes(), []);
  });

  it('refuses an invalid input at once, naming the field, what was expected and the value', async () => {
    const bad = rollouts.run('bad', { task: 'generated:train/1/0', maxTurns: 'many' } as never);
    await assert.rejects(bad, (error) => {
      assert.ok(error instanceof WorkflowFailedError);
      assert.match(String(error.cause), /maxTurns: expected a whole number from 1 to 100000 turns, got "many"/);
      return true;
    });
  });

  it('ends as invalid-task for an unknown task', async () => {
    const result = await rollouts.run('unknown', { task: 'harbor:/nowhere/task', agent: 'nop' });
    assert.equal(result.outcome, 'invalid-task');
    assert.equal(result.failure?.type, 'UnknownTask');
  });
});
