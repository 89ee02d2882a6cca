import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { stopSignal } from '../../workflows/contracts/messages.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { bundleChanged, withoutHeartbeats } from '../helpers/temporal/changed-workflows.ts';
import { until } from '../helpers/until.ts';

it('ends the agent of a stopped rollout long before the next heartbeat, while its sandbox waits to be released', async () => {
  let started = false;
  let ended = false;
  // The release, which waits here, needs none; the agent's heartbeats stay minutes apart.
  const workflowBundle = await bundleChanged('activity-options.ts', withoutHeartbeats);
  const rollouts = await startRollouts((home) => ({
    workflowBundle,
    taskRoots: [home],
    stages: (real) => ({
      ...real,
      awaitAgent: (input) => {
        started = true;
        return real.awaitAgent(input).finally(() => {
          ended = true;
        });
      },
      releaseSandbox: async (input) => {
        // Heartbeats are a minute and more apart.
        await until(() => ended);
        return real.releaseSandbox(input);
      },
    }),
  }));
  try {
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'sleeper', { solve: 'sleep 3600' });
    const handle = await rollouts.start('stopped', { task, agent: 'oracle' });
    await until(() => started);
    await handle.signal(stopSignal, 'stale');
    const { outcome, failure } = await handle.result();
    assert.deepEqual([outcome, failure], ['stale', null]);
    const { events } = await handle.fetchHistory();
    const tries = (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) => started?.attempt ?? []);
    assert.deepEqual([...new Set(tries)], [1], 'expected the release not to be tried again');
    assert.deepEqual(await rollouts.sandboxes(), []);
  } finally {
    await rollouts.close();
  }
});
