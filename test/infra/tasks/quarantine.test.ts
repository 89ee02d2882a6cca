import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { chooseTask } from '../../../activities/control/choose-task.ts';
import { createQuarantine, disagreeing, type FlakyEvidence, type Quarantine } from '../../../infra/tasks/quarantine.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { flakyText } from '../../../workers/cli/commands/tasks/release.ts';
import { createFileStore, createRecords } from '../../helpers/store/file-store.ts';

const evaluation = (reward: number, diff: string): FlakyEvidence => ({
  rollout: `r-${reward}-${diff}`,
  reward,
  diff,
  verdict: 'graded',
  log: 'f'.repeat(64),
});

describe('disagreeing evaluations', () => {
  it('are compared only with those of the same diff', () => {
    assert.deepEqual(disagreeing([evaluation(1, 'a'), evaluation(1, 'a'), evaluation(0, 'b')]), []);
    const flaky = disagreeing([evaluation(1, 'a'), evaluation(0, 'b'), evaluation(0, 'a'), evaluation(0, 'b')]);
    assert.deepEqual(flaky, [evaluation(1, 'a'), evaluation(0, 'a')]);
  });

  it('are described with their verdicts, so that timeouts can be distinguished from failures', () => {
    const late = { ...evaluation(0, 'a'), verdict: 'timeout, 1 passed, 0 failed', log: null };
    assert.equal(
      flakyText({ evidence: [evaluation(1, 'a'), late] }),
      `1 graded (log ${'f'.repeat(12)}), 0 timeout (log none)`,
    );
  });
});

describe('createQuarantine', () => {
  let home: string;
  let quarantine: Quarantine;
  let tasks: Tasks;
  const set = 'generated:test/1?count=3';
  const flaky = 'generated:test/1/1';

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-quarantine-'));
    quarantine = createQuarantine(createRecords(home));
    const dataSets = { directory: join(home, 'cache'), offline: true };
    tasks = createTasks({ store: createFileStore(join(home, 'store')), roots: [], dataSets });
    const addresses = [flaky, `blob:${'c'.repeat(64)}`];
    await quarantine.add({ task: 'generated-test-1-1', addresses, evidence: [evaluation(1, 'a'), evaluation(0, 'a')] });
  });
  after(() => rm(home, { recursive: true, force: true }));

  const choose = async (): Promise<readonly string[]> => {
    const inside = await quarantine.byAddress();
    const chosen = [0, 1, 2].map((index) =>
      chooseTask(tasks, { quarantined: inside, lacking: [] }, { tasks: set, seed: 1, index }),
    );
    return (await Promise.all(chosen)).map(({ address }) => address);
  };

  it('finds a task and its evidence by each of its addresses', async () => {
    const inside = await quarantine.byAddress();
    assert.equal(inside.size, 2);
    assert.deepEqual(inside.get(flaky)?.evidence, [evaluation(1, 'a'), evaluation(0, 'a')]);
    assert.equal(inside.get(flaky), inside.get(`blob:${'c'.repeat(64)}`));
  });

  it('does not quarantine a released task again for the same regrade', async () => {
    const before = { task: 'again', addresses: ['dir:again'], evidence: [evaluation(1, 'a'), evaluation(0, 'a')] };
    await quarantine.add({ ...before, by: 'one' });
    await quarantine.release('again');
    await quarantine.add({ ...before, by: 'one' });
    assert.equal((await quarantine.byAddress()).has('dir:again'), false);
    await quarantine.add({ ...before, by: 'another' });
    assert.equal((await quarantine.byAddress()).has('dir:again'), true);
    await quarantine.release('again');
  });

  it('keeps a run from choosing the task, without choosing another task twice instead', async () => {
    const inside = await quarantine.byAddress();
    const indexes = Array.from({ length: 40 }, (_, index) => index);
    const all = await Promise.all(
      indexes.map((index) => chooseTask(tasks, { quarantined: inside, lacking: [] }, { tasks: set, seed: 1, index })),
    );
    const times = Map.groupBy(all, ({ address }) => address);
    assert.deepEqual([...times].map(([address, { length }]) => [address, length]).sort(), [
      ['generated:test/1/0', 20],
      ['generated:test/1/2', 20],
    ]);
    const named = all.flatMap(({ passedOver = [] }) => passedOver);
    assert.deepEqual([...new Set(named)], [flaky]);
    // Each round names the skipped task, unless it would have been the last.
    assert.ok(named.length < 20);
  });

  it('rejects a set whose tasks are all quarantined', async () => {
    const inside = await quarantine.byAddress();
    const { digest } = await createFileStore(join(home, 'store')).putJson([flaky]);
    await assert.rejects(
      chooseTask(tasks, { quarantined: inside, lacking: [] }, { tasks: `blob:${digest}`, seed: 1, index: 0 }),
      /expected a task that is not quarantined/,
    );
  });

  it('releases a task by its id once, and keeps the evidence', async () => {
    assert.equal(await quarantine.release('generated-test-1-1'), 1);
    assert.equal(await quarantine.release('generated-test-1-1'), 0);
    assert.ok((await choose()).includes(flaky));
    const [name = ''] = await createRecords(home).names('quarantine');
    assert.equal(((await createRecords(home).read('quarantine', name)) as { evidence: unknown[] }).evidence.length, 2);
  });
});
