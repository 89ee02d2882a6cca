import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';

it('moves a rollout whose host stays away to another host in its second epoch', async () => {
  // The options are those of production, except that a stage waits seconds instead of minutes for a worker.
  const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
    source
      .replaceAll(/scheduleToStartTimeout: '\dm'/g, "scheduleToStartTimeout: '2s'")
      .replace("inspectAfter = '10m'", "inspectAfter = '2s'"),
  );
  const rollouts = await startRollouts(() => ({
    workflowBundle,
    placement: ({ placeRollout }) => ({
      placeRollout: async (input) =>
        input.epoch.epoch === 1 ? { host: 'gone', token: 'gone/1' } : placeRollout(input),
    }),
  }));
  try {
    const result = await rollouts.run('away', { task: 'generated:train/1/0', agent: 'oracle' });
    assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 1, 2], JSON.stringify(result));
    assert.deepEqual(await rollouts.sandboxes(), []);
  } finally {
    await rollouts.close();
  }
});
