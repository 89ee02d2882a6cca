import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createImageUses } from '../../../../../infra/sandbox/docker/images/uses.ts';

it('lists only recorded images with their last use, in every process', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-uses-'));
  try {
    const uses = createImageUses(join(directory, 'images'));
    assert.deepEqual(await uses.list(), []);
    await uses.use('was:there');
    await uses.add('r.example:5000/a/b@sha256:0');
    await uses.add('second:1');
    const other = createImageUses(join(directory, 'images'));
    const timesOf = async () => new Map((await other.list()).map(({ image, usedAtMs }) => [image, usedAtMs]));
    const before = await timesOf();
    assert.deepEqual([...before.keys()].sort(), ['r.example:5000/a/b@sha256:0', 'second:1']);
    const file = join(directory, 'images', createHash('sha256').update('second:1').digest('hex'));
    await utimes(file, 1, 1);
    assert.equal((await timesOf()).get('second:1'), 1_000);
    await uses.use('second:1');
    assert.ok(((await timesOf()).get('second:1') ?? 0) > 1_000);
    await other.forget('second:1');
    assert.deepEqual([...(await timesOf()).keys()], ['r.example:5000/a/b@sha256:0']);
  } finally {
    await rm(directory, { recursive: true });
  }
});
