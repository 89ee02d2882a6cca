import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createFileStarts } from '../../helpers/store/file-store.ts';

describe('the records of starts', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-starts-'));
  const starts = createFileStarts(home);
  const start = (id: string, key: string, startedAt = 1) =>
    starts.write({ kind: 'trainingRun', id, key, startedAt, input: {} });
  after(() => rm(home, { recursive: true, force: true }));

  it('are written once, and found by the workflow id', async () => {
    await start('my run', '01a2065d-b1e9-70d0-904a-334fbb79801c');
    await start('my run', '01a2065d-b1e9-70d0-904a-334fbb79801c', 2);
    await start('my-run', 'other');
    assert.equal((await starts.find('my run'))?.startedAt, 1);
    assert.equal((await starts.find('my-run'))?.key, 'other');
    assert.equal(await starts.find('never'), null);
  });

  it('find the newest of an id that was used again, or the one of a key', async () => {
    const [first, second] = ['01a2065d-b1e9-70d0-904a-00000000000a', '01a2065d-b1e9-70d0-904a-00000000000b'];
    await start('again', first);
    await start('again', second);
    for (const name of await readdir(join(home, 'starts'), { recursive: true }))
      if (name.endsWith('a.json')) await utimes(join(home, 'starts', name), 0, 0);
    assert.equal((await starts.find('again'))?.key, second);
    assert.equal((await starts.find('again', '00000000000a'))?.key, first);
    assert.equal(await starts.find('again', '00000000000c'), null);
  });
});
