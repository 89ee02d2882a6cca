import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { controlQueue } from '../../workflows/contracts/ids.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { bundleChanged } from '../helpers/changed-workflows.ts';
import { startTestServer } from '../helpers/temporal.ts';
import { startTestWorkers } from '../helpers/workers.ts';

it('a rollout whose host stays away moves to another, as its second attempt', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-away-'));
  const server = await startTestServer();
  // As in production but for the wait before a stage that nobody takes is looked into: minutes there.
  const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
    source.replaceAll(/scheduleToStartTimeout: '\dm'/g, "scheduleToStartTimeout: '2s'"),
  );
  const provider = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' });
  const workers = await startTestWorkers({
    server,
    home,
    provider,
    workflowBundle,
    placement: ({ placeRollout }) => ({
      placeRollout: async (input) => (input.attempt.epoch === 1 ? { host: 'gone' } : placeRollout(input)),
    }),
  });
  try {
    const result: RolloutResult = await server.client.workflow.execute('rollout', {
      taskQueue: controlQueue,
      workflowId: 'away',
      args: [{ task: 'generated:train/1/0', agent: 'oracle' }],
    });
    assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', 1, 2], JSON.stringify(result));
    assert.deepEqual(await provider.list('test-stack'), []);
  } finally {
    await workers.close();
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
});
