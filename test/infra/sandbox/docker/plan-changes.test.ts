import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planChanges } from '../../../../infra/sandbox/docker/plan-changes.ts';
import { itemsATurn } from '../../../../infra/sandbox/turns.ts';
import { countTurns } from '../../../helpers/event-loop.ts';

const [changed, added, deleted] = [0, 1, 2];
const line = (Kind: number, Path: string) => ({ Kind, Path });
const archivesOf = async (lines: Parameters<typeof planChanges>[0], leftOut: readonly string[] = []) =>
  (await planChanges(lines, leftOut)).archives.map(({ path, first }) => `${path}${first ? ' first' : ''}`);

describe('the plan of the archives of a container', () => {
  it('takes an added directory whole, a changed one by its own entry, and a changed file alone', async () => {
    const lines = [
      line(changed, '/etc'),
      line(changed, '/etc/passwd'),
      line(added, '/opt/new'),
      line(added, '/opt/new/deep'),
      line(added, '/opt/new/deep/file'),
      line(changed, '/opt'),
    ];
    const plan = await planChanges(lines, []);
    assert.deepEqual(await archivesOf(lines), ['/etc first', '/etc/passwd first', '/opt/new', '/opt first']);
    assert.deepEqual(plan.added, ['/opt/new']);
    assert.deepEqual(plan.changed, ['/', '/etc', '/etc/passwd', '/opt']);
    assert.deepEqual(
      ['/opt/new/deep/file', '/opt', '/etc/hosts', '/opt/old'].map((path) => plan.isWanted(path)),
      [true, true, false, false],
    );
  });

  it('takes neither what is left out nor the whole of what holds it', async () => {
    const lines = [line(added, '/logs'), line(added, '/logs/verifier'), line(added, '/logs/agent'), line(added, '/gw')];
    assert.deepEqual(await archivesOf(lines, ['/logs/verifier', '/gw']), ['/logs first', '/logs/agent']);
    assert.deepEqual((await planChanges(lines, ['/logs/verifier', '/gw'])).added, ['/logs/agent']);
  });

  it('takes one archive of a directory in which many files changed, and only those from it', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `/usr/bin/tool${index}`);
    const lines = [line(changed, '/usr'), line(changed, '/usr/bin'), ...names.map((name) => line(added, name))];
    assert.deepEqual(await archivesOf(lines), ['/usr first', '/usr/bin']);
    const plan = await planChanges(lines, []);
    assert.deepEqual([plan.isWanted('/usr/bin/tool7'), plan.isWanted('/usr/bin/env')], [true, false]);
  });

  it('lists the directory of a deleted path, whose other names stay', async () => {
    const lines = [line(changed, '/usr'), line(changed, '/usr/share'), line(deleted, '/usr/share/doc')];
    assert.deepEqual((await planChanges(lines, [])).changed, ['/', '/usr', '/usr/share']);
  });

  it('leaves the event loop to others while it plans very many paths', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => line(added, `/tmp/${index}`));
    const { result, turns } = await countTurns(() => planChanges([line(changed, '/tmp'), ...lines], []));
    assert.equal(result.added.length, lines.length);
    assert.ok(turns >= 2 * (lines.length / itemsATurn), `${turns} turns`);
  });
});
