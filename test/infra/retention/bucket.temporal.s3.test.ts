import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathsBelow } from '../../../infra/paths.ts';
import { dayMs, hourMs, type RetentionContext } from '../../../infra/retention/category.ts';
import { collect } from '../../../infra/retention/collect.ts';
import { createKnowledge } from '../../../infra/retention/knowledge.ts';
import { categories } from '../../../infra/retention/table.ts';
import type { S3Place } from '../../../infra/store/s3/place.ts';
import { openSharedState, type SharedState } from '../../../infra/store/shared-state.ts';
import { blobKey } from '../../../infra/store/store.ts';
import { type S3Server, startS3Server } from '../../helpers/store/s3-server.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';

const shared = categories.filter(({ folder }) => folder !== undefined);

describe('retention of a store in a bucket', () => {
  let s3: S3Server;
  let temporal: TestServer;
  let homes: string;
  before(async () => {
    s3 = await startS3Server();
    temporal = await startTestServer();
    homes = await mkdtemp(join(tmpdir(), 'temper-retention-bucket-'));
  });
  after(async () => {
    await temporal?.close();
    await s3?.close();
    await rm(homes, { recursive: true, force: true });
  });

  /** Opens an empty bucket in which all ends of workflows up to an hour ago are recorded. */
  async function opened(): Promise<{ readonly place: S3Place; readonly state: SharedState }> {
    const place = s3.place();
    const state = await openSharedState(place);
    await state.objects.replace('outcomes/ledger.json', ledger(Date.now() - hourMs), null);
    return { place, state };
  }

  const ledger = (untilMs: number): Buffer => Buffer.from(JSON.stringify({ untilMs, unknown: [] }));

  /** Makes a pass on a host of its own; returns the names of the entries that went or would go. */
  async function pass(state: SharedState, dryRun: boolean, changes: Partial<RetentionContext> = {}) {
    const home = await mkdtemp(join(homes, 'host-'));
    const names: string[] = [];
    const context: RetentionContext = {
      paths: pathsBelow(home),
      objects: state.objects,
      cacheDir: join(home, 'cache'),
      checkpoints: join(home, 'policy/checkpoints'),
      nowMs: Date.now(),
      cutoffMs: null,
      graceMs: dayMs,
      knowledge: createKnowledge(async () => temporal.client),
      signal: new AbortController().signal,
      note: () => undefined,
      ...changes,
    };
    const onEntry = (_: string, { name }: { readonly name: string }): void => void names.push(name);
    const reports = await collect(home, shared, context, { dryRun, limitMs: 120_000, onEntry });
    assert.ok(!('holder' in reports));
    for (const { category, skipped } of reports) assert.equal(skipped, null, category);
    return names.sort();
  }

  it('removes old blobs that nothing refers to, and stale uploads, but nothing that is needed, young or used again', async () => {
    const { place, state } = await opened();
    const put = async (text: string): Promise<string> => (await state.blobs.put(Buffer.from(text), 'x/y')).digest;
    const [garbage, young, again] = [await put('garbage'), await put('young'), await put('used again')];
    const row = await put('a diff that a record names');
    const task = (await state.blobs.putJson({ packed: 'task' })).digest;
    const list = (await state.blobs.putJson([`blob:${task}`])).digest;
    const data = await put('the data of an update');
    await state.runs.write('run', 'group-1', { rollouts: [{ diff: row }] });
    await state.common.write('packs', list, { set: `blob:${list}` });
    await state.objects.replace('trainer/01a21024-04aa-7838-9df4-0123456789ab.json', Buffer.from(data), null);
    await s3.beginUpload(place, 'store/ab/never-ended');
    for (const digest of [garbage, again, row, task, list, data]) await s3.age(place, blobKey(digest));
    assert.deepEqual(await pass(state, true), [garbage, again].sort());
    await put('used again');
    assert.deepEqual(await pass(state, false), [garbage]);
    for (const digest of [young, again, row, task, list, data]) assert.ok(await state.blobs.has(digest), digest);
    assert.equal(await state.blobs.has(garbage), false);
    // The upload is as young as this test; a pass a day later aborts it.
    const later = await pass(state, false, { nowMs: Date.now() + 1.5 * dayMs });
    assert.ok(
      later.some((name) => /^upload .* of .*never-ended$/.test(name)),
      later.join(),
    );
    for await (const { name } of state.objects.leftovers(['store'])) assert.fail(name);
  });

  it('removes what nothing needs while several hosts make a pass and put blobs at the same time', async () => {
    const { place, state } = await opened();
    const texts = Array.from({ length: 60 }, (_, index) => `blob ${index}`);
    const digests: string[] = [];
    for (const text of texts) {
      const { digest } = await state.blobs.put(Buffer.from(text), 'x/y');
      await s3.age(place, blobKey(digest));
      digests.push(digest);
    }
    const hosts = [state, await openSharedState(place)];
    const used = texts.slice(0, 20);
    await Promise.all(used.map((text) => hosts[1]?.blobs.put(Buffer.from(text), 'x/y')));
    const written = Array.from({ length: 40 }, (_, index) => `written meanwhile ${index}`);
    const puts = written.map((text) => hosts[1]?.blobs.put(Buffer.from(text), 'x/y'));
    const [blobs] = await Promise.all([
      Promise.all(puts),
      ...hosts.map((host) =>
        pass(host, false).catch((error: Error) => assert.match(error.message, /at the same time/)),
      ),
    ]);
    await pass(state, false);
    for (const blob of blobs) assert.ok(blob !== undefined && (await state.blobs.has(blob.digest)));
    const left = await Promise.all(digests.map((digest) => state.blobs.has(digest)));
    assert.deepEqual(
      left,
      texts.map((_, index) => index < used.length),
    );
  });

  it('removes the records, journals and cached verdicts of what is older than the given age', async () => {
    const { place, state } = await opened();
    await state.runs.write('old-run', 'step-1', {});
    await state.runs.write('old-run', 'step-2', {});
    await state.runs.write('new-run', 'step-1', {});
    await state.verdicts.write('ab', 'unused', {});
    await state.objects.replace('outcomes/2020-01-01.jsonl', Buffer.from('{}\n'), null);
    for (const key of ['runs/old-run/step-1.json', 'runs/old-run/step-2.json', 'verdicts/ab/unused.json']) {
      await s3.age(place, key);
    }
    const gone = await pass(state, false, { cutoffMs: Date.now() - 90 * dayMs });
    assert.deepEqual(gone, ['2020-01-01.jsonl', 'old-run', 'unused.json']);
    assert.deepEqual(await state.runs.names('old-run'), []);
    assert.deepEqual(await state.runs.names('new-run'), ['step-1']);
  });
});
