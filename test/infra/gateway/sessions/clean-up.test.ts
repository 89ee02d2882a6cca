import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { originOf } from '../../../../infra/gateway/http/request-origin.ts';
import { encodeRecord, type JournalRecord, loadJournal } from '../../../../infra/gateway/sessions/journal.ts';
import type { Sessions } from '../../../../infra/gateway/sessions/sessions.ts';
import { openSession } from '../../../helpers/gateway/gateway.ts';
import { sessionsIn } from '../../../helpers/gateway/sessions-in.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root, to mount a small disk';

it('a session that cannot be unloaded for lack of space blocks neither the other sessions nor the removal of old files', {
  skip,
}, async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-sweep-'));
  const journalDir = join(home, 'journals');
  await mkdir(journalDir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'temper-test', journalDir]);
  try {
    const before = await sessionsIn(home, journalDir);
    for (const id of ['full', 'other']) {
      await before.open(openSession(id));
      await ask(before, id);
    }
    await before.release();
    const old = join(journalDir, 'old.sealed.json');
    await writeFile(old, '{}');
    await utimes(old, 1, 1);
    await fillPage(join(journalDir, 'full.jsonl'));

    const sessions = await sessionsIn(home, journalDir);
    // A retry, whose count is written when the session is unloaded.
    for (const id of ['full', 'other']) await ask(sessions, id);
    const { bavail, bsize } = await statfs(journalDir);
    await writeFile(join(journalDir, 'filler'), Buffer.alloc(bavail * bsize));
    await assert.rejects(sessions.cleanUp(), /no space left to write/);
    for (const id of ['full', 'other']) {
      const loaded = await loadJournal(join(journalDir, `${id}.jsonl`));
      assert.ok(loaded !== null && loaded !== 'locked-elsewhere', `expected ${id} to be unloaded`);
      const last = loaded.records.at(-1);
      assert.equal(last?.kind === 'rest' && last.retries, id === 'full' ? 0 : 1);
      await loaded.journal.close();
    }
    assert.equal(existsSync(old), false);
  } finally {
    // The unmount is lazy: when the test fails, a session may still have its journal open.
    execFileSync('umount', ['-l', journalDir]);
    await rm(home, { recursive: true, force: true });
  }
});

async function ask(sessions: Sessions, id: string): Promise<void> {
  const session = await sessions.find(id);
  assert.ok(session !== null && 'ask' in session, `expected session ${id} in this process`);
  const conversation = { messages: [{ role: 'user' as const, text: 'x' }], tools: [] };
  const request = { conversation, delivery: 'whole', maxTokens: null, sampling: {} } as const;
  await (await session.ask(request, originOf({}))).turn.result;
}

/** Fills the journal until the next record needs another page of the disk. */
async function fillPage(path: string): Promise<void> {
  const loaded = await loadJournal(path);
  assert.ok(loaded !== null && loaded !== 'locked-elsewhere');
  const record: JournalRecord = { kind: 'rest', at: 0, retries: 0 };
  const { length } = encodeRecord(record);
  for (let { size } = await stat(path); 4096 - (size % 4096) > 60; size += length) await loaded.journal.append(record);
  await loaded.journal.close();
}
