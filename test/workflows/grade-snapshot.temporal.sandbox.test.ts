import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { carriedTask, regrade, snapshotRollouts, writeDefaultTask } from './grade-snapshot-suite.ts';

snapshotRollouts('local', () => ({}));

describe('a kind of sandbox whose changes cannot be carried', () => {
  let rollouts: Rollouts;
  before(async () => {
    rollouts = await startRollouts((home) => {
      const local = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' });
      return { taskRoots: [join(home, 'tasks')], provider: { ...local, carriesChanges: false } };
    });
  });
  after(() => rollouts?.close());

  it('refuses a task before the start whose tests need a snapshot', async () => {
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'carried', carriedTask);
    const { outcome, failure } = await rollouts.run('carried', { task, agent: 'oracle', sandbox: 'local' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'UnsupportedTask', 'provisionSandbox']);
    assert.match(failure?.message ?? '', /cannot carry out of local sandboxes/);
  });

  it('judges the diff of a task that does not say where its tests run, also in a regrade', async () => {
    const task = await writeDefaultTask(join(rollouts.home, 'tasks'));
    const result = await rollouts.run('default', { task, agent: 'oracle', sandbox: 'local' });
    assert.deepEqual(
      [result.outcome, result.reward, result.snapshot],
      ['scored', 0, undefined],
      JSON.stringify(result),
    );
    assert.equal(result.verdict?.exposure, 'same-account');
    assert.equal((await regrade(rollouts, ['default'])).same, 1);
  });
});
