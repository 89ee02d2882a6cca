import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { reconcile, recordGroup, recordRollout } from '../../activities/control/groups.ts';
import { readFinished } from '../../activities/control/regrades/read-finished.ts';
import { recordKey } from '../../infra/store/rollout-records.ts';
import { newestChain } from '../../infra/temporal/chain.ts';
import { settleRollout } from '../../infra/temporal/settle-rollout.ts';
import { resultWithout } from '../../workflows/algorithms/rollout-end.ts';
import { groupId, rolloutId } from '../../workflows/contracts/ids.ts';
import { outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import type { RolloutRecord } from '../../workflows/contracts/rollout-record.ts';
import { createFileRollouts, createFileStarts, createRecords } from '../helpers/store/file-store.ts';
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
    const starts = createFileStarts(home);
    const deps = { client: knowsNothing, records: createRecords(home), rollouts, starts };
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
    const groupOf = { group, groupKey: 'a-key', startedAt: 0, member, rollouts: keys };
    const [[reconciled], recorded] = await Promise.all([
      reconcile(deps, { run: 'run', runKey, rolloutsPerGroup: 2, groups }),
      recordGroup(deps, { ...groupOf, task: 'an address' }),
    ]);
    assert.ok(reconciled?.state === 'ended');
    assert.deepEqual(reconciled.summary, recorded);
    assert.deepEqual(recorded.outcomes, { ...zeroCount(outcomes), scored: 1, cancelled: 1 });
    const report = await deps.records.read(runKey, 'group-0');
    await recordGroup(deps, { ...groupOf, task: 'another address' });
    assert.deepEqual(await deps.records.read(runKey, 'group-0'), report);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

describe('a record that cannot be read', () => {
  const runKey = '01a2065d-b1e9-70d0-904a-334fbb79801f';
  const [first, second] = [0, 1].map((index) => rolloutId(groupId('run', runKey, index), 0));
  const recordOf = (workflowId = ''): RolloutRecord => {
    const known = { rollout: 'a-key', workflowId, task: 'task', agent: 'mini' };
    return { format: 1, writer: 'rollout', result: { ...resultWithout(known, 'gone'), outcome: 'scored', reward: 1 } };
  };
  async function inHome(work: (home: string) => Promise<void>): Promise<void> {
    const home = await mkdtemp(join(tmpdir(), 'temper-unreadable-'));
    try {
      for (const id of [first, second]) await createFileRollouts(home).write(recordOf(id));
      await writeFile(join(home, recordKey(first ?? '') ?? ''), '{"format":1,');
      await work(home);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }

  it('makes its rollout infra and does not hold up the other groups of the run', () =>
    inHome(async (home) => {
      const deps = { client: knowsNothing, records: createRecords(home), rollouts: createFileRollouts(home) };
      const groups = [0, 1].map((index) => ({ index, admittedVersion: 3 }));
      const states = await reconcile(deps, { run: 'run', runKey, rolloutsPerGroup: 1, groups });
      const found = states.map((state) => (state.state === 'ended' ? state.summary.outcomes : state.state));
      assert.deepEqual(found, [
        { ...zeroCount(outcomes), infra: 1 },
        { ...zeroCount(outcomes), scored: 1 },
      ]);
    }));

  it('does not hold up the rollout that would write it, whose own result counts', () =>
    inHome(async (home) => {
      const log = { info: () => {}, warn: () => {} };
      const write = () => recordRollout(createFileRollouts(home), recordOf(first));
      const recorded = await asyncLocalStorage.run({ log } as unknown as Context, write);
      assert.deepEqual(recorded, { adopted: null });
    }));

  it('is left out of a regrade, and so is one that is gone', () =>
    inHome(async (home) => {
      const deps = { rollouts: createFileRollouts(home), tasks: { resolve: () => assert.fail('no task is needed') } };
      for (const [record, reason] of [
        [recordKey(first ?? '') ?? '', /expected a rollout's record of format 1, got no JSON/],
        ['rollouts/00/gone/334fbb79801f/rollout.json', /rollouts\/00\/gone\/.* was removed from the store/],
      ] as const) {
        const { rollout, leftOut } = await readFinished(deps, { record }, null, null);
        assert.equal(rollout, record);
        assert.match(leftOut ?? '', reason);
      }
    }));
});

it('takes the record that a rollout has written itself for its own, whatever the order of its keys', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-own-record-'));
  try {
    const rollouts = createFileRollouts(home);
    const known = { rollout: 'a-key', workflowId: rolloutId('run/key/group-1', 0), task: 'task', agent: 'mini' };
    const { agent, ...rest } = resultWithout(known, 'gone');
    const record = { format: 1, writer: 'rollout', result: { ...rest, agent } } as const;
    for (let turn = 0; turn < 2; turn += 1) {
      assert.deepEqual(await recordRollout(rollouts, record), { adopted: null });
    }
    const other = { ...record, result: { ...record.result, reward: 1 } };
    assert.deepEqual((await recordRollout(rollouts, other)).adopted?.reward, null);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

it('writes no record of a rollout that is paused in Temporal, or whose status is unknown, since it has not ended', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-paused-'));
  try {
    const rollouts = createFileRollouts(home);
    const runKey = '01a2065d-b1e9-70d0-904a-334fbb79801f';
    const workflowId = rolloutId(groupId('run', runKey, 0), 0);
    for (const name of ['PAUSED', 'UNKNOWN']) {
      const describe = async () => ({ status: { name }, runId: 'a-key', raw: {} });
      const client = { workflow: { getHandle: () => ({ describe }) } } as unknown as Client;
      assert.equal(await settleRollout({ client, rollouts }, { workflowId, task: '' }), null);
      assert.equal((await newestChain(client, workflowId))?.running, true);
      const deps = { client, records: createRecords(home), rollouts };
      const asked = { run: 'run', runKey, rolloutsPerGroup: 1, groups: [{ index: 0, admittedVersion: 3 }] };
      assert.deepEqual(await reconcile(deps, asked), [{ index: 0, state: 'running' }]);
    }
    assert.equal(await rollouts.find({ workflowId }), null);
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
