import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createHostNotes } from '../../../infra/store/host-notes.ts';
import { createRecords } from '../../helpers/store/file-store.ts';

describe('the notes of a host', () => {
  const root = mkdtempSync(join(tmpdir(), 'host-notes-'));
  const notes = createHostNotes(createRecords(root));
  after(() => rmSync(root, { recursive: true, force: true }));

  it('are read by other processes, one for each subject, until they are withdrawn', async () => {
    assert.deepEqual(await notes.list('host-1'), {});
    await notes.set('host-1', 'admission', 'takes no new rollouts');
    await notes.set('host-1', 'admission', 'takes no new rollouts: memory');
    await notes.set('host-1', 'other', 'another sentence');
    const found = await createHostNotes(createRecords(root)).list('host-1');
    assert.deepEqual(
      Object.entries(found).map(([subject, { text }]) => [subject, text]),
      [
        ['admission', 'takes no new rollouts: memory'],
        ['other', 'another sentence'],
      ],
    );
    await notes.set('host-1', 'admission', null);
    assert.deepEqual(Object.keys(await notes.list('host-1')), ['other']);
    assert.deepEqual(await notes.list('host-2'), {});
  });
});
