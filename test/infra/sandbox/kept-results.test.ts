import assert from 'node:assert/strict';
import { mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { createKeptResults } from '../../../infra/sandbox/kept-results.ts';

const usableMs = 3_600_000;
const epoch = { rollout: 'r', epoch: 2 };
const result = { stop: 'submitted' };

async function keptIn(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'temper-results-'));
  t.after(() => rm(directory, { recursive: true }));
  const results = createKeptResults(directory, usableMs);
  await results.keep(epoch, result);
  return { directory, results, file: join(directory, 'r.2.json') };
}

it('finds a kept result, and none whose blobs may be gone', async (t) => {
  const { results, file } = await keptIn(t);
  assert.deepEqual(await results.find(epoch), result);
  assert.equal(await results.find({ ...epoch, epoch: 1 }), null);
  const beforeSec = (Date.now() - usableMs) / 1000 - 1;
  await utimes(file, beforeSec, beforeSec);
  assert.equal(await results.find(epoch), null);
  assert.deepEqual(
    (await results.list(usableMs)).map(({ rollout }) => rollout),
    ['r'],
  );
});

it('finds no result in an empty file or in one that a power cut has torn', async (t) => {
  const { results, file } = await keptIn(t);
  for (const torn of ['', '\0'.repeat(18), '{"stop":"subm', 'null']) {
    await writeFile(file, torn);
    assert.equal(await results.find(epoch), null, JSON.stringify(torn));
  }
  await results.keep(epoch, result);
  assert.deepEqual(await results.find(epoch), result);
});

it('lists and removes a result that a killed process has left unfinished', async (t) => {
  const { directory, results, file } = await keptIn(t);
  await rename(file, `${file}.0123456789ab.tmp`);
  assert.equal(await results.find(epoch), null);
  assert.deepEqual(
    (await results.list(0)).map(({ ageMs: _, ...one }) => one),
    [epoch],
  );
  await results.remove(epoch);
  await results.remove(epoch);
  assert.deepEqual(await readdir(directory), []);
});
