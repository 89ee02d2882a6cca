import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import { startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';

/** The test waits for the idle minute after which a run restores engine weights. */
it('restores the weights of the last step on an engine without weights while rollouts wait for it, and delays no step', async (context) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-restore-'));
  context.after(() => rm(home, { recursive: true, force: true }));
  const server = await startTestServer();
  context.after(() => server.close());

  const restored = Promise.withResolvers<number>();
  const workers = await startScriptedWorkers(server, home, {
    reward: (id) => (id.endsWith('rollout-0') ? 0 : 1),
    // The rollouts of the second step get no token before the engine has its weights again.
    agent: async () => {
      if (workers.published.at(-1) === 1) await restored.promise;
    },
    // Another engine hangs while it loads its weights, so that the activity ends by nothing but its cancellation.
    restore: (version, signal) => {
      restored.resolve(version);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  context.after(() => workers.close());

  const request = { tasks: 'generated:train/1', steps: 2, groupsPerStep: 1, rolloutsPerGroup: 2, maxStaleness: 0 };
  const run = { taskQueue: controlQueue, workflowId: 'restoring', args: [request] };
  const handle = await server.client.workflow.start('trainingRun', run);
  const status: RunStatus = await handle.result();
  assert.equal(await restored.promise, 1);
  assert.equal(status.step, 2);
  assert.equal(status.groups.trained, 2);
  const events = (await handle.fetchHistory()).events ?? [];
  const cancelled = events.filter((event) => event.activityTaskCanceledEventAttributes);
  assert.equal(cancelled.length, 1, 'the step ended the restoration before its time was over');
});
