import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
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

it('says which file of a directory cannot be used', async () => {
  const directory = await mkdtemp(join(root, 'broken-'));
  await writeFile(join(directory, 'store'), 'a file where a folder should be');
  const objects = createDirectory(directory);
  await assert.rejects(objects.putOnce('store/ab/one', Buffer.from('1')), {
    type: 'StoreUnavailable',
    message: /cannot use .*store\/ab\/one/,
  });
});
