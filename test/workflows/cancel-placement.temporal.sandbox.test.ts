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

it('takes no slot and provisions nothing for a rollout that has a record, and returns its result', async () => {
  let provisioned = 0;
  const rollouts = await startRollouts(() => ({
    stages: (real) => ({
      ...real,
      provisionSandbox: (input) => {
        provisioned += 1;
        return real.provisionSandbox(input);
      },
    }),
  }));
  try {
    const request = { task: 'generated:train/1/0', agent: 'oracle' } as const;
    // The id of a rollout of a run, whose key, unlike that of one by hand, is in it.
    const id = 'restored/0123456789ab/group-0/rollout-0';
    const first = await rollouts.run(id, request);
    assert.deepEqual([first.outcome, provisioned], ['scored', 1]);
    assert.deepEqual(await rollouts.run(id, request), first);
    assert.deepEqual([provisioned, rollouts.host.slots.taken], [1, 0]);
  } finally {
    await rollouts.close();
  }
});
