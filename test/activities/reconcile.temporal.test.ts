import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { reconcile, recordGroup } from '../../activities/control/groups.ts';
import { resultWithout } from '../../workflows/algorithms/rollout-end.ts';
import { groupId, rolloutId } from '../../workflows/contracts/ids.ts';
import { outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { createFileRollouts, createRecords } from '../helpers/store/file-store.ts';
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
    const deps = { client: server.client, records: createRecords(home), rollouts: createFileRollouts(home) };
    const groups = [{ index: 0, admittedVersion: 3 }];
    const asked = { run: 'run', runKey, rolloutsPerGroup: 3, groups };
    const [state] = await reconcile(deps, asked);
    assert.ok(state?.state === 'ended');
    const counts = { ...zeroCount(outcomes), infra: 1, cancelled: 2 };
    assert.deepEqual(state.summary.outcomes, counts);
    const ended = [failed, terminated, rolloutId(groupId('run', runKey, 0), 2)];
    const found = await Promise.all(ended.map((workflowId) => deps.rollouts.find({ workflowId })));
    assert.deepEqual(
      found.map((record) => [record?.writer, record?.result.outcome]),
      [
        ['reader', 'infra'],
        ['reader', 'cancelled'],
        ['reader', 'cancelled'],
      ],
    );
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
      const deps = { client: server.client, records: createRecords(home), rollouts: createFileRollouts(home) };
      const [found] = await reconcile(deps, asked);
      states.push(found?.state ?? 'none');
    }
    assert.deepEqual(states, ['running', 'ending', 'ended']);
  } finally {
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
});

it('makes one report of a group, also if two write it at once, and takes outcomes from the records of its rollouts', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-reconcile-'));
  try {
    const runKey = '01a2065d-b1e9-70d0-904a-334fbb79801e';
    const group = groupId('run', runKey, 0);
    const keys = ['01a2065d-0000-70d0-904a-000000000000', '01a2065d-0000-70d0-904a-000000000001'];
    const rollouts = createFileRollouts(home);
    const deps = { client: knowsNothing, records: createRecords(home), rollouts };
    const write = (outcome: 'scored' | 'stale', reward: number | null) => {
      const known = { rollout: keys[0] ?? '', workflowId: rolloutId(group, 0), task: 'task', agent: 'mini' };
      const result = { ...resultWithout(known, 'gone'), outcome, reward, failure: null };
      return rollouts.write({ format: 1, writer: 'rollout', result });
    };
    await write('scored', 1);
    const adopted = await write('stale', null);
    assert.deepEqual([adopted.result.outcome, adopted.result.reward], ['scored', 1], 'the first record counts');
    const groups = [{ index: 0, admittedVersion: 3 }];
    const member = { run: 'run', runKey, group, index: 0, admittedVersion: 3 };
    const [[reconciled], recorded] = await Promise.all([
      reconcile(deps, { run: 'run', runKey, rolloutsPerGroup: 2, groups }),
      recordGroup(deps, { group, task: 'an address', member, rollouts: keys }),
    ]);
    assert.ok(reconciled?.state === 'ended' && 'summary' in recorded);
    assert.deepEqual(reconciled.summary, recorded.summary);
    assert.deepEqual(recorded.summary.outcomes, { ...zeroCount(outcomes), scored: 1, cancelled: 1 });
    const report = await deps.records.read(runKey, 'group-0');
    await recordGroup(deps, { group, task: 'another address', member, rollouts: keys });
    assert.deepEqual(await deps.records.read(runKey, 'group-0'), report);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

/** A server whose database was restored to a time before any of this. */
const knowsNothing = {
  workflow: {
    getHandle: (workflowId: string) => ({
      describe: () => Promise.reject(new WorkflowNotFoundError('not found', workflowId, undefined)),
    }),
  },
} as unknown as Client;
