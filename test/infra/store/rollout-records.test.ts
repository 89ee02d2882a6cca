import assert from 'node:assert/strict';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { resultWithout } from '../../../workflows/algorithms/rollout-end.ts';
import { groupId, placeOfRollout, rolloutId, sweepRolloutId } from '../../../workflows/contracts/ids.ts';
import type { RegradeRow } from '../../../workflows/contracts/regrade.ts';
import type { RolloutRecord } from '../../../workflows/contracts/rollout-record.ts';
import { createFileRollouts } from '../../helpers/store/file-store.ts';

const key = '01a2065d-b1e9-70d0-904a-334fbb79801c';
const group = groupId('my run', key, 1234);
const attempt = { task: 250, attempt: 3, retry: 1 };

const recordOf = (workflowId: string, rollout = 'a-key', task = 'task'): RolloutRecord => ({
  format: 1,
  writer: 'rollout',
  result: resultWithout({ rollout, workflowId, task, agent: 'mini' }, 'cancelled'),
});

describe('the records of rollouts', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-rollout-records-'));
  const rollouts = createFileRollouts(home);
  const keysOf = async (owner?: string): Promise<readonly string[]> => {
    const keys: string[] = [];
    for await (const found of rollouts.list(owner)) keys.push(found.key);
    return keys;
  };
  after(() => rm(home, { recursive: true, force: true }));

  it('have keys that follow from the workflow id, in folders that do not grow without bound', async () => {
    const sweepId = sweepRolloutId('sweep', key, attempt);
    assert.deepEqual(placeOfRollout(rolloutId(group, 5)), {
      kind: 'run',
      owner: 'my run',
      key: '334fbb79801c',
      group: 1234,
      name: 'rollout-5',
    });
    assert.deepEqual(placeOfRollout(sweepId), {
      kind: 'sweep',
      owner: 'sweep',
      key: '334fbb79801c',
      task: 250,
      name: 'rollout-250-3-retry-1',
    });
    for (const id of ['rollout/quixbugs-gcd/1f3c9a2b', 'group/rollout-1']) {
      assert.deepEqual(placeOfRollout(id), { kind: 'by-hand', owner: id });
    }
    for (const id of [rolloutId(group, 5), sweepId, 'group/rollout-1']) await rollouts.write(recordOf(id));
    const [ofRun = ''] = await keysOf('my run');
    assert.match(
      ofRun,
      /^rollouts\/[0-9a-f]{2}\/my-run-[0-9a-f]{16}\/334fbb79801c\/groups-12\/group-1234\/rollout-5\.json$/,
    );
    const [ofSweep = ''] = await keysOf('sweep');
    assert.match(ofSweep, /\/sweep-[0-9a-f]{16}\/334fbb79801c\/tasks-2\/rollout-250-3-retry-1\.json$/);
    const [byHand = ''] = await keysOf('group/rollout-1');
    assert.match(byHand, /\/group-rollout-1-[0-9a-f]{16}\/a-key\/rollout\.json$/);
    assert.equal((await keysOf()).length, 3);
  });

  it('are written once: a second writer gets the first one', async () => {
    const id = rolloutId(group, 6);
    const writers = await Promise.all(
      ['first', 'second', 'third'].map((task) => rollouts.write(recordOf(id, 'k', task))),
    );
    const [first] = new Set(writers.map(({ result }) => result.task));
    assert.equal(new Set(writers.map(({ result }) => result.task)).size, 1);
    assert.equal((await rollouts.find({ workflowId: id }))?.result.task, first);
  });

  it('tell rollouts by hand of one id apart, and find the newest one without a key', async () => {
    for (const one of ['first-key', 'second-key']) await rollouts.write(recordOf('again', one, one));
    for (const found of await keysOf('again')) if (found.includes('first')) await utimes(join(home, found), 0, 0);
    assert.equal((await rollouts.find({ workflowId: 'again', rollout: 'first-key' }))?.result.task, 'first-key');
    assert.equal((await rollouts.find({ workflowId: 'again' }))?.result.task, 'second-key');
    assert.equal(await rollouts.find({ workflowId: 'again', rollout: 'third-key' }), null);
    assert.equal(await rollouts.find({ workflowId: 'never' }), null);
    await rollouts.write(recordOf(sweepRolloutId('another sweep', key, attempt)));
    assert.equal(await rollouts.find({ workflowId: 'another sweep' }), null, 'it is a sweep');
  });

  it('have those of regrades beside them, which are no rollouts', async () => {
    const id = rolloutId(group, 7);
    await rollouts.write(recordOf(id));
    const before = await keysOf('my run');
    const row = { rollout: id, state: 'same', before: 1, after: 1 } as RegradeRow;
    const regrade = { format: 1, regrade: 'regrade', regradeKey: key, row, recordedAt: 1 } as const;
    const name = { workflowId: id, rollout: 'a-key' };
    const later = { ...regrade, regrade: 'later', regradeKey: 'another', recordedAt: 2 };
    for (const one of [later, regrade, { ...regrade, recordedAt: 3 }]) await rollouts.writeRegrade(name, one);
    await rollouts.writeRegrade({ ...name, workflowId: rolloutId(group, 70) }, regrade);
    assert.deepEqual(await keysOf('my run'), before);
    assert.deepEqual(await rollouts.regrades(name), [regrade, later]);
    assert.deepEqual(await rollouts.regrades({ ...name, workflowId: rolloutId(group, 71) }), []);
  });

  it('of another format are refused by name', async () => {
    await rollouts.write(recordOf('other-format'));
    const [found = ''] = await keysOf('other-format');
    await writeFile(join(home, found), JSON.stringify({ ...recordOf('other-format'), format: 2 }));
    await assert.rejects(
      rollouts.find({ workflowId: 'other-format' }),
      /other-format-.*expected a rollout's record of format 1/,
    );
  });
});
