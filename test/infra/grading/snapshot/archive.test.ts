import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { flagEmpty, openSnapshot } from '../../../../infra/grading/snapshot/archive.ts';
import { keepChanges } from '../../../../infra/grading/snapshot/keep-snapshot.ts';
import { type CarriedEntry, type ReadChanges, tooManyChanges } from '../../../../infra/sandbox/changes.ts';
import { drain } from '../../../../infra/sandbox/tar-entries.ts';
import type { Store } from '../../../../infra/store/store.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

async function storeIn(t: TestContext): Promise<Store> {
  const root = await mkdtemp(join(tmpdir(), 'archive-'));
  t.after(() => rm(root, { recursive: true }));
  return createFileStore(root);
}

const keep = (store: Store, read: ReadChanges) =>
  keepChanges({ kind: 'docker', read }, store, { secrets: [], mostBytes: 1_000 }, AbortSignal.timeout(10_000));

it('keeps the names of very many changes in pieces, and finds all of them again', async (t) => {
  const store = await storeIn(t);
  const names = Array.from({ length: 1_000 }, (_, index) => `name-${index}`);
  const listings = [
    { directory: '/tmp', names },
    { directory: '/empty', names: [] },
  ];
  const added = names.map((name) => `/tmp/${name}`);
  const common = { mode: 0o644, uid: 'agent', gid: 'agent', mtime: new Date(0), size: 0 } as const;
  async function* entries(): AsyncIterable<CarriedEntry> {
    for (const path of added) yield { header: { ...common, type: 'file', path }, content: (async function* () {})() };
  }
  const found = await openSnapshot(store, await keep(store, { listings, added, entries }));
  assert.deepEqual([found.listings, found.added], [listings, added]);
  const paths: string[] = [];
  for await (const { header, content } of found.entries) {
    paths.push(header.path);
    await drain(content);
  }
  assert.deepEqual(paths, added);
});

it('keeps nothing of more changes than are read, which has the flag for bulk', async (t) => {
  const snapshot = await keep(await storeIn(t), tooManyChanges);
  assert.deepEqual(snapshot.parts, []);
  assert.deepEqual(
    flagEmpty(snapshot, (above) => `above ${above}`),
    { trick: 'bulk', evidence: 'above 1000' },
  );
});
