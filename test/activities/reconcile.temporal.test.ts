import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { reconcile } from '../../activities/control/groups.ts';
import { groupId, rolloutId } from '../../workflows/contracts/ids.ts';
import { outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { createRecords } from '../helpers/store/file-store.ts';
import { answerTask } from '../helpers/temporal/manual-worker.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';

it('counts a failed rollout as infra, as its group does, and a terminated or missing one as cancelled', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-reconcile-'));
  const server = await startTestServer();
  try {
    const runKey = '01a2065d-b1e9-70d0-904a-334fbb79801c';
    const [failed, terminated] = [0, 1].map((index) => rolloutId(groupId('run', runKey, 0), index));
    assert.ok(failed !== undefined && terminated !== undefined);
    const start = (workflowId: string) =>
      server.client.workflow.start('rollout', { workflowId, taskQueue: workflowId });
    await start(failed);
    await answerTask(server, failed, 'fail');
    await (await start(terminated)).terminate('by the test');
    const records = createRecords(home);
    const groups = [{ index: 0, admittedVersion: 3 }];
    const asked = { run: 'run', runKey, rolloutsPerGroup: 3, groups };
    const [state] = await reconcile({ client: server.client, records }, asked);
    assert.ok(state?.state === 'ended');
    assert.deepEqual(state.summary.outcomes, { ...zeroCount(outcomes), infra: 1, cancelled: 2 });
  } finally {
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
});

it('says of a group that was terminated that it is ending until its rollouts have ended', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-reconcile-'));
  const server = await startTestServer();
  try {
    const runKey = '01a2065d-b1e9-70d0-904a-334fbb79801d';
    const group = groupId('run', runKey, 0);
    const start = (type: string, workflowId: string) =>
      server.client.workflow.start(type, { workflowId, taskQueue: workflowId });
    const ofGroup = await start('group', group);
    const ofRollout = await start('rollout', rolloutId(group, 0));
    const asked = { run: 'run', runKey, rolloutsPerGroup: 1, groups: [{ index: 0, admittedVersion: 3 }] };
    const states: string[] = [];
    for (const handle of [null, ofGroup, ofRollout]) {
      await handle?.terminate('by the test');
      const [found] = await reconcile({ client: server.client, records: createRecords(home) }, asked);
      states.push(found?.state ?? 'none');
    }
    assert.deepEqual(states, ['running', 'ending', 'ended']);
  } finally {
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
});
