import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { ListedObject, Objects } from '../../../infra/store/objects.ts';
import { createRecords } from '../../../infra/store/records.ts';
import { createStore } from '../../../infra/store/store.ts';

export interface ContractSubject {
  /** Opens objects of their own, on a place where nothing is. */
  open(): Promise<Objects>;
  /** Makes an object as old as retention asks for. */
  age(objects: Objects, key: string): Promise<void>;
  /** Changes the bytes of an object behind its back. */
  damage(objects: Objects, key: string): Promise<void>;
}

/** More than one part of an upload. */
const largeBytes = 9 * 2 ** 20;

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Describes the behaviour of every kind of shared objects, and of the blobs and records in them. */
export function describeObjects(kind: string, { open, age, damage }: ContractSubject): void {
  describe(`objects in ${kind}`, () => {
    it('returns null for what is not there', async () => {
      const objects = await open();
      assert.equal(await objects.get('runs/none/step-1.json'), null);
      assert.equal(await objects.stat('runs/none/step-1.json'), null);
      assert.equal(await objects.renew('runs/none/step-1.json'), false);
      assert.equal(await objects.remove('runs/none/step-1.json'), true);
      assert.deepEqual(await all(objects.list('runs/none')), []);
    });

    it('refuses a key that would lead out of its folders', async () => {
      const objects = await open();
      for (const key of ['../a', 'a/../b', '/a', 'a//b', 'a/', '.a', 'a b']) {
        await assert.rejects(async () => objects.get(key), /expected a key of/);
      }
    });

    it('lets one of many writers create an object', async () => {
      const objects = await open();
      const writers = Array.from({ length: 12 }, (_, index) => text(`writer ${index}`));
      const versions = await Promise.all(writers.map((bytes) => objects.replace('a/one', bytes, null)));
      const winner = versions.findIndex((version) => version !== null);
      assert.equal(versions.filter((version) => version !== null).length, 1);
      const found = await objects.get('a/one');
      assert.deepEqual([found?.bytes, found?.version], [asBytes(writers[winner]), versions[winner]]);
    });

    it('replaces an object only if it has the expected version', async () => {
      const objects = await open();
      const first = await objects.replace('a/b/one', text('1'), null);
      assert.ok(first !== null);
      const second = await objects.replace('a/b/one', text('2'), first);
      assert.ok(second !== null && second !== first);
      assert.equal(await objects.replace('a/b/one', text('3'), first), null);
      assert.equal(await objects.replace('a/b/other', text('3'), first), null);
      assert.deepEqual(await objects.get('a/b/one'), { bytes: asBytes(text('2')), version: second });
      assert.equal(await objects.get('a/b/other'), null);
    });

    it('replaces a large object only if it has the expected version', async () => {
      const objects = await open();
      const [first, second, third] = [randomBytes(largeBytes), randomBytes(largeBytes), randomBytes(largeBytes)];
      const version = await objects.replace('a/large', first, null);
      assert.ok(version !== null);
      assert.equal(await objects.replace('a/large', second, null), null);
      const later = await objects.replace('a/large', second, version);
      assert.ok(later !== null && later !== version);
      assert.equal(await objects.replace('a/large', third, version), null);
      assert.equal(Buffer.compare((await objects.get('a/large'))?.bytes ?? Buffer.alloc(0), second), 0);
    });

    it('lists the objects below a folder, and no neighbour whose name begins alike', async () => {
      const objects = await open();
      const keys = Array.from({ length: 25 }, (_, index) => `runs/one/group-${index}.json`);
      for (const key of [...keys, 'runs/one/sub/deep', 'runs/one-more/x', 'other/y']) {
        await objects.replace(key, text(key), null);
      }
      const found = await all(objects.list('runs/one'));
      assert.deepEqual(found.map(({ key }) => key).sort(), [...keys, 'runs/one/sub/deep'].sort());
      assert.deepEqual(
        found.map(({ key, size }) => size === key.length),
        found.map(() => true),
      );
      const facts = await objects.stat('runs/one/sub/deep');
      assert.ok(facts !== null && Math.abs(Date.now() - facts.changedAtMs) < 60_000);
    });

    it('reads the beginning of an object', async () => {
      const objects = await open();
      await objects.replace('a/long', text('0123456789'), null);
      await objects.replace('a/empty', text(''), null);
      const read = async (key: string, most: number) => {
        const found = await objects.peek(key, most);
        return found === null ? null : Buffer.from(found).toString();
      };
      assert.deepEqual([await read('a/long', 4), await read('a/long', 100)], ['0123', '0123456789']);
      assert.deepEqual([await read('a/empty', 4), await read('a/none', 4)], ['', null]);
    });

    it('removes an object unless it was put again or renewed since', async () => {
      const objects = await open();
      const keys = ['b/unused', 'b/put', 'b/renewed'];
      for (const key of keys) {
        await objects.putOnce(key, text(key));
        await age(objects, key);
      }
      const sinceMs = ((await objects.stat('b/unused'))?.changedAtMs ?? 0) + 1000;
      await objects.putOnce('b/put', text('b/put'));
      assert.equal(await objects.renew('b/renewed'), true);
      const removed = await Promise.all(keys.map((key) => objects.remove(key, sinceMs)));
      assert.deepEqual(removed, [true, false, false]);
      const left = await Promise.all(keys.map(async (key) => (await objects.get(key))?.bytes ?? null));
      assert.deepEqual(left, [null, asBytes(text('b/put')), asBytes(text('b/renewed'))]);
      assert.equal(await objects.remove('b/put'), true);
      assert.equal(await objects.get('b/put'), null);
    });

    it('gives an object another version, but no other bytes, each time that it is renewed', async () => {
      const objects = await open();
      for (const [key, bytes] of [
        ['b/small', randomBytes(10)],
        ['b/large', randomBytes(9 * 2 ** 20)],
      ] as const) {
        await objects.putOnce(key, bytes);
        for (let times = 0; times < 3; times += 1) {
          await age(objects, key);
          const before = await objects.get(key);
          assert.equal(await objects.renew(key), true);
          const after = await objects.get(key);
          assert.notEqual(after?.version, before?.version);
          assert.equal(Buffer.compare(after?.bytes ?? Buffer.alloc(0), bytes), 0);
          const { changedAtMs = 0 } = (await objects.stat(key)) ?? {};
          assert.ok(Date.now() - changedAtMs < 60_000);
        }
      }
    });

    it('keeps blobs of any size by their digest, also one that is put by several at once', async () => {
      const objects = await open();
      const store = createStore(objects);
      for (const size of [0, 1, 8 * 2 ** 20, 8 * 2 ** 20 + 1, 20 * 2 ** 20]) {
        const bytes = randomBytes(size);
        const [blob] = await Promise.all([store.put(bytes, 'x/y'), store.put(bytes, 'x/y')]);
        assert.equal(blob.size, size);
        assert.equal(Buffer.compare(await store.get(blob.digest), bytes), 0);
        assert.deepEqual(await store.describe(blob.digest, 'x/y'), blob);
      }
      assert.equal(await store.has('0'.repeat(64)), false);
      await assert.rejects(store.get('0'.repeat(64)), { type: 'BlobMissing' });
      await assert.rejects(store.get('short'), { type: 'BlobMissing' });
    });

    it('notices a blob whose bytes are not those of its digest', async () => {
      const objects = await open();
      const store = createStore(objects);
      const { digest } = await store.put(text('whole'), 'text/plain');
      await damage(objects, `store/${digest.slice(0, 2)}/${digest}`);
      await assert.rejects(store.get(digest), { type: 'BlobMissing', message: /has other content; remove store\// });
    });

    it('loses no update of a record that many processes change at once', async () => {
      const records = createRecords(await open(), 'runs');
      const add = (value: number) =>
        records.update('run', 'all', (before) => [...((before as number[] | null) ?? []), value]);
      await Promise.all(Array.from({ length: 8 }, (_, index) => add(index)));
      assert.deepEqual(((await records.read('run', 'all')) as number[]).sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
    });

    it('writes, replaces, withdraws and names records', async () => {
      const records = createRecords(await open(), 'runs');
      await records.write('run', 'step-1', { step: 1 });
      await records.write('run', 'step-1', { step: 1 });
      await records.write('run', 'step-2', { step: 'two' });
      await records.write('run', 'step-2', { step: 2 });
      await records.write('run', 'note', 'text');
      await records.write('run', 'note', null);
      await records.update('run', 'step-1', () => undefined);
      assert.deepEqual((await records.names('run')).toSorted(), ['note', 'step-1', 'step-2']);
      assert.deepEqual(await records.read('run', 'step-2'), { step: 2 });
      assert.equal(await records.find('run', 'note'), null);
      assert.equal(await records.find('run', 'step-3'), null);
      await assert.rejects(records.read('run', 'step-3'), { type: 'BlobMissing' });
      await assert.rejects(records.write('run', '../x', 1), { type: 'BlobMissing' });
      assert.deepEqual(await records.names('another'), []);
    });
  });
}

/** Buffers and arrays of the same bytes are not deeply equal. */
const asBytes = (bytes: Uint8Array | undefined): Buffer => Buffer.from(bytes ?? []);

async function all(list: AsyncIterable<ListedObject>): Promise<readonly ListedObject[]> {
  const found: ListedObject[] = [];
  for await (const one of list) found.push(one);
  return found;
}
