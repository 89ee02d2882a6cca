import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';

it('leaves a rollout that asks for a kind of sandbox to the hosts that have it, and its evaluation, while there are any', async () => {
  const asked: string[] = [];
  const takenThen: number[] = [];
  /** The first three questions are about the rollout, the others about its evaluation. */
  const offered = [true, true, false, true, false];
  await using stack = new AsyncDisposableStack();
  const rollouts = await startRollouts(() => ({
    isOfferedElsewhere: async (kind) => {
      takenThen.push(rollouts.host.slots.taken);
      return offered[asked.push(kind) - 1] ?? assert.fail('asked too often');
    },
  }));
  stack.defer(rollouts.close);
  const task = { task: 'generated:train/1/0', agent: 'oracle' } as const;
  const { outcome } = await rollouts.run('other-kind', { ...task, sandbox: 'docker' });
  assert.equal(outcome, 'scored');
  assert.deepEqual(
    asked,
    Array.from(offered, () => 'docker'),
  );
  assert.deepEqual(takenThen.slice(0, 3), [0, 0, 0]);
  const { events } = await rollouts.client.workflow.getHandle('other-kind').fetchHistory();
  const tries = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
    scheduled?.activityType?.name === 'evaluate' ? [scheduled] : [],
  );
  assert.equal(tries.length, 2);
  await rollouts.run('own-kind', { ...task, sandbox: 'local' });
  assert.equal(asked.length, offered.length);
});
