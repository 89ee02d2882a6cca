import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planChanges } from '../../../../infra/sandbox/docker/plan-changes.ts';

const [changed, added, deleted] = [0, 1, 2];
const line = (Kind: number, Path: string) => ({ Kind, Path });
const archivesOf = (lines: Parameters<typeof planChanges>[0], leftOut: readonly string[] = []) =>
  planChanges(lines, leftOut).archives.map(({ path, first }) => `${path}${first ? ' first' : ''}`);

describe('the plan of the archives of a container', () => {
  it('takes an added directory whole, a changed one by its own entry, and a changed file alone', () => {
    const lines = [
      line(changed, '/etc'),
      line(changed, '/etc/passwd'),
      line(added, '/opt/new'),
      line(added, '/opt/new/deep'),
      line(added, '/opt/new/deep/file'),
      line(changed, '/opt'),
    ];
    const plan = planChanges(lines, []);
    assert.deepEqual(archivesOf(lines), ['/etc first', '/etc/passwd first', '/opt/new', '/opt first']);
    assert.deepEqual(plan.added, ['/opt/new']);
    assert.deepEqual(plan.changed, ['/', '/etc', '/etc/passwd', '/opt']);
    assert.deepEqual(
      ['/opt/new/deep/file', '/opt', '/etc/hosts', '/opt/old'].map((path) => plan.isWanted(path)),
      [true, true, false, false],
    );
  });

  it('takes neither what is left out nor the whole of what holds it', () => {
    const lines = [line(added, '/logs'), line(added, '/logs/verifier'), line(added, '/logs/agent'), line(added, '/gw')];
    assert.deepEqual(archivesOf(lines, ['/logs/verifier', '/gw']), ['/logs first', '/logs/agent']);
    assert.deepEqual(planChanges(lines, ['/logs/verifier', '/gw']).added, ['/logs/agent']);
  });

  it('takes one archive of a directory in which many files changed, and only those from it', () => {
    const names = Array.from({ length: 40 }, (_, index) => `/usr/bin/tool${index}`);
    const lines = [line(changed, '/usr'), line(changed, '/usr/bin'), ...names.map((name) => line(added, name))];
    assert.deepEqual(archivesOf(lines), ['/usr first', '/usr/bin']);
    const plan = planChanges(lines, []);
    assert.deepEqual([plan.isWanted('/usr/bin/tool7'), plan.isWanted('/usr/bin/env')], [true, false]);
  });

  it('lists the directory of a deleted path, whose other names stay', () => {
    const lines = [line(changed, '/usr'), line(changed, '/usr/share'), line(deleted, '/usr/share/doc')];
    assert.deepEqual(planChanges(lines, []).changed, ['/', '/usr', '/usr/share']);
  });
});
