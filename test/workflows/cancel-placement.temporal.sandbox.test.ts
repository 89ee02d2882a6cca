import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { until } from '../helpers/until.ts';

it('releases the slot of a rollout that is cancelled while the answer of its host is on the way', async () => {
  const placed = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const rollouts = await startRollouts(() => ({
    placement: ({ placeRollout }) => ({
      placeRollout: async (input) => {
        const placement = await placeRollout(input);
        placed.resolve();
        await answer.promise;
        return placement;
      },
    }),
  }));
  const { slots } = rollouts.host;
  try {
    const handle = await rollouts.start('placed', { task: 'generated:train/1/0', agent: 'oracle' });
    await placed.promise;
    assert.equal(slots.taken, 1);
    await handle.cancel();
    const cancelRequested = async () =>
      (await handle.fetchHistory()).events?.some(({ activityTaskCancelRequestedEventAttributes: cancel }) => cancel);
    await until(cancelRequested);
    answer.resolve();
    await assert.rejects(handle.result(), { message: /cancelled/i });
    assert.equal(slots.taken, 0);
  } finally {
    answer.resolve();
    await rollouts.close();
  }
});
