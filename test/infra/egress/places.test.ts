import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { createEgressPlaces } from '../../../infra/egress/places.ts';

const row = {
  host: 'pypi.test',
  port: 443,
  phase: 'agent',
  decision: 'allowed',
  requests: 3,
  bytesIn: 100,
  bytesOut: 10,
} as const;

it('the record of a sandbox is beside the directory that is mounted into it, and goes with it', async (t) => {
  const root = join(await mkdtemp(join(tmpdir(), 'temper-places-')), 'egress');
  t.after(() => rm(dirname(root), { recursive: true }));
  const places = createEgressPlaces(root);
  assert.deepEqual(await places.recorded('one', 'agent'), []);
  const directory = await places.make('one');
  assert.equal(await places.make('one'), directory);
  assert.equal(dirname(places.socketOf('one')), directory);
  await places.record('one', 'agent', [row]);
  await places.record('one', 'agent', [row, { ...row, port: 80 }]);
  assert.deepEqual(await createEgressPlaces(root).recorded('one', 'agent'), [row, { ...row, port: 80 }]);
  assert.deepEqual(await places.recorded('one', 'tests'), []);
  for (const name of await readdir(root)) if (name.endsWith('.json')) await truncate(join(root, name), 5);
  assert.deepEqual(await places.recorded('one', 'agent'), [], 'a power cut has torn it');
  assert.deepEqual(await readdir(directory), []);
  assert.equal((await stat(root)).mode & 0o777, 0o711);
  await places.remove('one');
  await places.remove('one');
  assert.deepEqual(await readdir(root), []);
});

it('what a killed process left is cleared once it is old, unless its sandbox is still there', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-places-'));
  t.after(() => rm(root, { recursive: true }));
  const places = createEgressPlaces(root);
  for (const name of ['live', 'left']) {
    await places.make(name);
    await places.record(name, 'agent', [row]);
  }
  await places.clear([], Date.now() - 60_000);
  assert.equal((await readdir(root)).length, 4);
  await places.clear(['live'], Date.now() + 60_000);
  assert.deepEqual(await places.recorded('live', 'agent'), [row]);
  assert.ok(existsSync(dirname(places.socketOf('live'))));
  assert.equal((await readdir(root)).length, 2);
  await createEgressPlaces(join(root, 'absent')).clear([], Date.now());
});
