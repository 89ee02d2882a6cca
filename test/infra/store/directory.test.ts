import assert from 'node:assert/strict';
import { mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createDirectory } from '../../../infra/store/directory.ts';
import { describeObjects } from './contract.ts';

const root = await mkdtemp(join(tmpdir(), 'temper-objects-'));
after(() => rm(root, { recursive: true, force: true }));

describeObjects('a directory', {
  open: async () => createDirectory(await mkdtemp(join(root, 'one-'))),
  age: ({ location }, key) => utimes(join(location, key), 0, 0),
  damage: ({ location }, key) => writeFile(join(location, key), 'other'),
});

it('leaves neither locks nor unfinished writes in a directory', async () => {
  const directory = await mkdtemp(join(root, 'clean-'));
  const objects = createDirectory(directory);
  const first = await objects.replace('a', Buffer.from('1'), null);
  await objects.replace('a', Buffer.from('2'), null);
  await objects.replace('a', Buffer.from('2'), first);
  await objects.replace('a', Buffer.from('3'), first);
  assert.deepEqual(await readdir(directory), ['a']);
});

it('creates objects in a folder that others remove whenever it is empty', async () => {
  const objects = createDirectory(await mkdtemp(join(root, 'emptied-')));
  const createAndRemove = async (writer: number): Promise<void> => {
    for (let round = 0; round < 200; round += 1) {
      const version = await objects.replace(`hosts/${writer}`, Buffer.from('1'), null);
      assert.notEqual(await objects.replace(`hosts/${writer}`, Buffer.from('2'), version), null);
      assert.equal(await objects.remove(`hosts/${writer}`), true);
    }
  };
  await Promise.all([1, 2, 3, 4].map(createAndRemove));
});

it('removes the folders above an object that is removed, as far as they are empty', async () => {
  const directory = await mkdtemp(join(root, 'folders-'));
  const objects = createDirectory(directory);
  for (const key of ['rollouts/ab/one/groups-0/a', 'rollouts/ab/two/b']) await objects.putOnce(key, Buffer.from('1'));
  await objects.remove('rollouts/ab/one/groups-0/a');
  assert.deepEqual(await readdir(join(directory, 'rollouts/ab')), ['two']);
  await objects.remove('rollouts/ab/two/b');
  assert.deepEqual(await readdir(directory), []);
});

it('says which file of a directory cannot be used', async () => {
  const directory = await mkdtemp(join(root, 'broken-'));
  await writeFile(join(directory, 'store'), 'a file where a folder should be');
  const objects = createDirectory(directory);
  await assert.rejects(objects.putOnce('store/ab/one', Buffer.from('1')), {
    type: 'StoreUnavailable',
    message: /cannot use .*store\/ab\/one/,
  });
});

describe('a removal from a directory that was killed', () => {
  it('is finished, but gives an object its name back that was used before', async () => {
    const directory = await mkdtemp(join(root, 'removed-'));
    const objects = createDirectory(directory);
    for (const key of ['store/ab/unused', 'store/ab/used']) {
      await objects.putOnce(key, Buffer.from(key));
      if (key === 'store/ab/unused') await utimes(join(directory, key), 0, 0);
      await rename(join(directory, key), join(directory, `${key}.abc.removed`));
    }
    for await (const { kind, settle } of objects.leftovers(['store'])) {
      assert.equal(kind, 'removal');
      await settle(Date.now() - 60_000);
    }
    assert.deepEqual(await readdir(join(directory, 'store/ab')), ['used']);
  });
});

it('lists the unfinished writes of a directory, and removes them', async () => {
  const directory = await mkdtemp(join(root, 'written-'));
  const objects = createDirectory(directory);
  await objects.putOnce('store/ab/whole', Buffer.from('whole'));
  await writeFile(join(directory, 'store/ab/part.abc.tmp'), 'part');
  for await (const { name, kind, size, settle } of objects.leftovers(['store', 'runs'])) {
    assert.deepEqual([name, kind, size], ['store/ab/part.abc.tmp', 'write', 4]);
    assert.equal(await settle(0), true);
  }
  assert.deepEqual(await readdir(join(directory, 'store/ab')), ['whole']);
});

it('leaves every object of a directory in place that writers put while it is removed', async () => {
  const directory = await mkdtemp(join(root, 'raced-'));
  const objects = createDirectory(directory);
  const keys = Array.from({ length: 200 }, (_, index) => `store/ab/${index}`);
  for (const key of keys) {
    await objects.putOnce(key, Buffer.from(key));
    await utimes(join(directory, key), 0, 0);
  }
  const sinceMs = Date.now() - 60_000;
  await Promise.all(keys.flatMap((key) => [objects.putOnce(key, Buffer.from(key)), objects.remove(key, sinceMs)]));
  for (const key of keys) assert.equal((await objects.get(key))?.bytes.toString(), key);
  for await (const { name } of objects.leftovers(['store'])) assert.fail(name);
});
