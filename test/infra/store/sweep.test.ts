import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Store } from '../../../infra/store/store.ts';
import { createStoreSweep, type StoreSweep } from '../../../infra/store/sweep.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

const yesterdayMs = Date.now() - 86_400_000;

describe('the sweep of a file store', () => {
  let root: string;
  let store: Store;
  let sweep: StoreSweep;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-sweep-'));
    store = createFileStore(root);
    sweep = createStoreSweep(join(root, 'store'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const pathOf = (digest: string): string => join(root, 'store', digest.slice(0, 2), digest);
  async function putOld(text: string): Promise<string> {
    const { digest } = await store.put(Buffer.from(text), 'text/plain');
    await utimes(pathOf(digest), 0, 0);
    return digest;
  }

  it('lists each blob with its size and last use', async () => {
    const digest = await putOld('four');
    assert.deepEqual(await all(sweep.list()), [{ digest, bytes: 4, usedAtMs: 0 }]);
  });

  it('removes a blob that was not used since, and keeps one that was put or described again', async () => {
    const [unused, put, described] = [await putOld('unused'), await putOld('put'), await putOld('described')];
    await store.put(Buffer.from('put'), 'text/plain');
    await store.describe(described, 'text/plain');
    const removed = await Promise.all([unused, put, described].map((digest) => sweep.remove(digest, yesterdayMs)));
    assert.deepEqual(removed, [true, false, false]);
    assert.equal(await store.has(unused), false);
    assert.equal(await store.has(put), true);
    assert.equal(await store.has(described), true);
  });

  it('leaves every blob in place that writers put while it removes them', async () => {
    const texts = Array.from({ length: 200 }, (_, index) => `blob ${index}`);
    const digests = await Promise.all(texts.map(putOld));
    const puts = texts.map((text) => store.put(Buffer.from(text), 'text/plain'));
    await Promise.all([...puts, ...digests.map((digest) => sweep.remove(digest, yesterdayMs))]);
    for (const digest of digests) assert.equal(await store.has(digest), true);
    assert.deepEqual(await all(sweep.leftovers()), []);
  });

  it('finishes a removal that was killed, and gives a blob its name back that was used before', async () => {
    const [unused, used] = [await putOld('unused'), await putOld('used')];
    await store.put(Buffer.from('used'), 'text/plain');
    for (const digest of [unused, used]) await rename(pathOf(digest), `${pathOf(digest)}.abc.removed`);
    await sweep.finishRemovals(yesterdayMs);
    assert.deepEqual([await store.has(unused), await store.has(used)], [false, true]);
    assert.equal((await stat(pathOf(used))).nlink, 1);
  });
});

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}
