import assert from 'node:assert/strict';
import { it } from 'node:test';
import { groupId } from '../../workflows/contracts/ids.ts';
import { runStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest } from '../../workflows/contracts/run.ts';
import { bundleChanged, withoutHeartbeats } from '../helpers/temporal/changed-workflows.ts';
import { startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until } from '../helpers/until.ts';

/** Makes the intervals between looks after cancelled work so long that no test sees one end, but for groups that were terminated. */
const longIntervals = (module: string): string =>
  withoutHeartbeats(module)
    .replaceAll(/(cancelAgainFirstMs|cancelAgainMostMs|cancelledLookMostMs) = [\d_]+/g, '$1 = 3_600_000')
    .replace(/endingLookMs = [\d_]+/, 'endingLookMs = 100');

it('ends a cancelled run as soon as the rollouts of a terminated group have ended', async () => {
  const workflowBundle = await bundleChanged('activity-options.ts', longIntervals);
  await using undo = new AsyncDisposableStack();
  const stack = await startScriptedStack({ workflowBundle });
  undo.defer(() => stack.close());
  let [atWork, cleaning] = [0, 0];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  undo.defer(release);
  stack.script = {
    reward: () => 1,
    agent: () => {
      atWork += 1;
      return new Promise(() => undefined);
    },
    release: () => {
      cleaning += 1;
      return released;
    },
  };
  const { client } = stack.server;
  const request: RunRequest = { tasks: 'generated:train/1', steps: 1, groupsPerStep: 1, rolloutsPerGroup: 2 };
  const options = { taskQueue: controlQueue, workflowId: 'torn', args: [request] };
  const handle = await client.workflow.start('trainingRun', options);
  await until(() => atWork === 2);
  const { runKey } = await handle.query(runStatusQuery);
  await handle.cancel();
  await until(() => cleaning === 2);
  await client.workflow.getHandle(groupId('torn', runKey, 0)).terminate('by the test');
  await until(async () => {
    const events = (await handle.fetchHistory()).events ?? [];
    const types = events.map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name);
    return types.filter((type) => type === 'reconcileGroups').length >= 2;
  });
  assert.equal((await handle.query(runStatusQuery)).phase, 'cancelling');
  release();
  await assert.rejects(handle.result(), /cancelled/i);
  const { groups, rollouts } = await handle.query(runStatusQuery);
  assert.deepEqual([groups.cancelled, rollouts.cancelled], [1, 2]);
});
