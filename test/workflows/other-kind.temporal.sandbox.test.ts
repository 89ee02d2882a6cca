import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';

it('leaves a rollout that asks for a kind of sandbox to the hosts that have it, while there are any', async () => {
  const asked: string[] = [];
  const takenThen: number[] = [];
  await using stack = new AsyncDisposableStack();
  const rollouts = await startRollouts(() => ({
    isOfferedElsewhere: async (kind) => {
      asked.push(kind);
      takenThen.push(rollouts.host.slots.taken);
      return asked.length < 3;
    },
  }));
  stack.defer(rollouts.close);
  const task = { task: 'generated:train/1/0', agent: 'oracle' } as const;
  const { outcome } = await rollouts.run('other-kind', { ...task, sandbox: 'docker' });
  assert.equal(outcome, 'scored');
  assert.deepEqual(
    [asked, takenThen],
    [
      ['docker', 'docker', 'docker'],
      [0, 0, 0],
    ],
  );
  await rollouts.run('own-kind', { ...task, sandbox: 'local' });
  assert.equal(asked.length, 3);
});
