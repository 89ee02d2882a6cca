import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  pauseSignal,
  type RolloutStatus,
  resumeSignal,
  rolloutStatusQuery,
  stopSignal,
} from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { until } from '../helpers/until.ts';

const request = { task: 'generated:train/1/0', agent: 'oracle' };

describe('a paused rollout', () => {
  let rollouts: Rollouts;
  /** Resolves when the rollouts may have their sandboxes. */
  let mayProvision = Promise.resolve();

  before(async () => {
    rollouts = await startRollouts(() => ({
      stages: (real) => ({
        ...real,
        provisionSandbox: async (input) => {
          await mayProvision;
          return real.provisionSandbox(input);
        },
      }),
    }));
  });
  after(() => rollouts?.close());

  /** Starts a rollout that is paused before its first stage, because the signal comes with the start. */
  async function startPaused(workflowId: string) {
    const options = { taskQueue: controlQueue, workflowId, args: [request] };
    const signal = { signal: pauseSignal, signalArgs: ['lunch'] as [string] };
    const handle = await rollouts.client.workflow.signalWithStart('rollout', { ...options, ...signal });
    const paused: RolloutStatus = await handle.query(rolloutStatusQuery);
    assert.deepEqual([paused.stage, paused.paused, paused.host], ['resolveTask', true, null]);
    return handle;
  }

  it('starts no stage until it is resumed, then is scored', async () => {
    const handle = await startPaused('paused');
    await handle.signal(resumeSignal);
    const { outcome, reward, stageSeconds } = await handle.result();
    assert.deepEqual([outcome, reward], ['scored', 1]);
    assert.ok(stageSeconds.resolveTask > 0);
  });

  it('cleans up when it is stopped during the pause', async (t) => {
    const handle = await startPaused('stopped');
    const paused = Promise.withResolvers<void>();
    t.after(() => paused.resolve());
    mayProvision = paused.promise;
    await handle.signal(resumeSignal);
    await until(async () => (await handle.query<RolloutStatus>('rolloutStatus')).host !== null);
    await handle.signal(pauseSignal, 'again');
    paused.resolve();
    await until(async () => (await rollouts.sandboxes()).length === 1);
    await handle.signal(stopSignal, 'stale');
    const { outcome, stageSeconds } = await handle.result();
    assert.equal(outcome, 'stale');
    assert.ok('releaseSandbox' in stageSeconds, JSON.stringify(stageSeconds));
    assert.deepEqual(await rollouts.sandboxes(), []);
  });
});
