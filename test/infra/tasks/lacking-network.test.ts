import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { chooseTask } from '../../../activities/control/choose-task.ts';
import { lackingAmong, requireNetworks } from '../../../infra/tasks/lacking-network.ts';
import { lookAtRunTasks } from '../../../infra/tasks/run-tasks.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';

const environment = '[environment]\ndocker_image = "any"\n';
const { signal } = new AbortController();
const listed = 'network_mode = "allowlist"\nallowed_hosts = ["a.example"]\n';

describe('tasks that lack a network', () => {
  let home: string;
  let tasks: Tasks;
  let set: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-lacking-'));
    set = `harbor:${home}/set`;
    const dataSets = { directory: join(home, 'cache'), offline: true };
    tasks = createTasks({ store: createFileStore(join(home, 'store')), roots: [home], dataSets });
    const download = { test: 'curl https://a.example/\n' };
    await writeHarborTask(join(home, 'set'), 'agent', { toml: `${environment}[agent]\n${listed}` });
    await writeHarborTask(join(home, 'set'), 'broken', { toml: 'version = 1\n' });
    await writeHarborTask(join(home, 'set'), 'closed', { ...download, toml: `${environment}allow_internet = false\n` });
    await writeHarborTask(join(home, 'set'), 'default', {});
    await writeHarborTask(join(home, 'set'), 'downloads', download);
    await writeHarborTask(join(home, 'set'), 'tests', { toml: `${environment}[verifier]\n${listed}` });
  });
  after(() => rm(home, { recursive: true, force: true }));

  const lackingWith = async (
    given: Omit<Parameters<typeof lookAtRunTasks>[2], 'skipped'>,
  ): Promise<readonly string[]> => {
    const inSet = await lookAtRunTasks(tasks, set, { ...given, skipped: new Set() }, signal);
    const among = await lackingAmong(tasks, { set, addresses: await tasks.list(set) }, given, signal);
    assert.deepEqual(inSet, { ...among, tasks: inSet.tasks, forgeable: [] });
    return inSet.lacking.map(({ id }) => id);
  };

  it('are those that ask for one, and those whose tests download by default', async () => {
    assert.deepEqual(await lackingWith({ cap: 'none' }), ['agent', 'downloads', 'tests']);
    assert.deepEqual(await lackingWith({ cap: 'allowlist' }), ['downloads']);
    assert.deepEqual(await lackingWith({ cap: 'public' }), []);
  });

  it('are those that ask for one for their agent, if the tests are to run without', async () => {
    assert.deepEqual(await lackingWith({ cap: 'none', offlineTests: true }), ['agent']);
    assert.deepEqual(await lackingWith({ cap: 'allowlist', offlineTests: true }), []);
  });

  it('are not looked for among those that no run chooses, nor in sets that need no network', async () => {
    const skipped = new Set([`${set}/downloads`, `${set}/agent`]);
    const found = await lookAtRunTasks(tasks, set, { cap: 'none', skipped }, signal);
    assert.deepEqual([found.tasks, found.lacking.map(({ id }) => id)], [3, ['tests']]);
    for (const other of ['generated:train/1', 'swe-gym:/no/such/file.jsonl'])
      assert.deepEqual(await lookAtRunTasks(tasks, other, { cap: 'none', skipped }, signal), {
        tasks: 0,
        lacking: [],
        forgeable: [],
      });
  });

  it('refuse their set, with their number and an example', async () => {
    const found = await lookAtRunTasks(tasks, set, { cap: 'allowlist', skipped: new Set() }, signal);
    const message =
      /set: 1 of 5 tasks need a network that TEMPER_NETWORK does not allow, for example downloads: .*curl/;
    assert.throws(() => requireNetworks(set, found), { type: 'UnsupportedTask', message });
    requireNetworks(set, { tasks: 5, lacking: [] });
  });

  it('are given to no group of a run that leaves them out', async () => {
    const { lacking } = await lookAtRunTasks(tasks, set, { cap: 'none', skipped: new Set() }, signal);
    const left = lacking.map(({ address }) => address);
    const choose = (index: number) =>
      chooseTask(tasks, { quarantined: new Map(), lacking: left }, { tasks: set, seed: 1, index });
    const chosen = await Promise.all(Array.from({ length: 12 }, (_, index) => choose(index)));
    assert.deepEqual(
      new Set(chosen.map(({ address }) => address)),
      new Set(['broken', 'closed', 'default'].map((id) => `${set}/${id}`)),
    );
    const all = { quarantined: new Map(), lacking: await tasks.list(set) };
    await assert.rejects(chooseTask(tasks, all, { tasks: set, seed: 1, index: 0 }), {
      message: /expected a task that is not quarantined and has the network that it needs, got none/,
    });
  });
});
