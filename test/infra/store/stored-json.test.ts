import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createDirectory } from '../../../infra/store/directory.ts';
import { openJournal } from '../../../infra/trainer/journal.ts';
import { createFileStarts, createRecords } from '../../helpers/store/file-store.ts';

describe('a document that is cut in half', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-cut-'));
  after(() => rm(home, { recursive: true, force: true }));

  async function cut(folder: string, name: RegExp): Promise<void> {
    const [found = ''] = (await readdir(join(home, folder), { recursive: true })).filter((one) => name.test(one));
    const path = join(home, folder, found);
    const bytes = await readFile(path);
    await writeFile(path, bytes.subarray(0, bytes.byteLength / 2));
  }

  it('is named if it is a record of a run', async () => {
    const records = createRecords(join(home, 'runs'));
    await records.write('key', 'group-1', { index: 1, task: 'a task' });
    await cut('runs/key', /^group-1/);
    const named = { type: 'BlobMissing', message: /runs\/key\/group-1\.json: expected JSON, and its \d+ bytes/ };
    await assert.rejects(records.find('key', 'group-1'), named);
    await assert.rejects(records.writeOnce('key', 'group-1', {}), named);
  });

  it('is named if it is the record of a start', async () => {
    const starts = createFileStarts(home);
    await starts.write({ kind: 'trainingRun', id: 'cut', key: 'key', startedAt: 1, input: {} });
    await cut('starts', /\.json$/);
    await assert.rejects(starts.find('cut'), { type: 'BlobMissing', message: /starts\/.*key\.json: expected JSON/ });
  });

  it("is named if it is a trainer's journal", async () => {
    const objects = createDirectory(home);
    await (await openJournal(objects, 'key')).write({ step: 3 });
    await cut('trainer', /^key\.json$/);
    await assert.rejects(openJournal(objects, 'key'), { type: 'BlobMissing', message: /trainer\/key\.json: expected/ });
  });
});
