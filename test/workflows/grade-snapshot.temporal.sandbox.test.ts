import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { carriedTask, snapshotRollouts } from './grade-snapshot-suite.ts';

snapshotRollouts('local', () => ({}));

it('a task whose tests need a snapshot is refused before the start where changes cannot be carried', async (t) => {
  const rollouts = await startRollouts((home) => ({
    taskRoots: [join(home, 'tasks')],
    provider: {
      ...createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' }),
      carriesChanges: false,
    },
  }));
  t.after(() => rollouts.close());
  const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'carried', carriedTask);
  const { outcome, failure } = await rollouts.run('carried', { task, agent: 'oracle', sandbox: 'local' });
  assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'UnsupportedTask', 'provisionSandbox']);
  assert.match(failure?.message ?? '', /cannot carry out of local sandboxes/);
});
