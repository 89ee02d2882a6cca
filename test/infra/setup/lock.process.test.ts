import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { processIdentity } from '../../../infra/process/process-identity.mjs';
import { type Lock, tryLock, withLock } from '../../../infra/setup/lock.mjs';

describe("the set-up's lock", () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-lock-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('names its living holder until it is released', () => {
    const path = join(directory, 'below/first');
    const lock = takeLock(path);
    assert.deepEqual(tryLock(path), { holder: processIdentity(process.pid) });
    lock.release();
    takeLock(path).release();
  });

  it('is free when its holder has ended, when another process has its pid, and when the file is not a valid lock', async () => {
    const path = join(directory, 'stale');
    const child = spawn(process.execPath, ['-e', '0']);
    await once(child, 'exit');
    for (const content of [
      JSON.stringify({ pid: child.pid, startedAt: '1' }),
      JSON.stringify({ ...processIdentity(process.pid), startedAt: 'earlier' }),
      'torn',
    ]) {
      await writeFile(path, content);
      takeLock(path).release();
    }
  });

  it('lets one caller at a time do its work, even after a stale file', async () => {
    const path = join(directory, 'contended');
    await writeFile(path, JSON.stringify({ pid: 1, startedAt: 'never' }));
    let working = 0;
    const work = async (): Promise<void> => {
      working += 1;
      assert.equal(working, 1);
      await new Promise((resolve) => setImmediate(resolve));
      working -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(path, work)));
  });

  it('is released when the work fails', async () => {
    const path = join(directory, 'failing');
    await assert.rejects(
      withLock(path, () => Promise.reject(new Error('the work'))),
      /the work/,
    );
    takeLock(path).release();
  });
});

function takeLock(path: string): Lock {
  const lock = tryLock(path);
  assert.ok('release' in lock, `expected ${path} to be free, got ${JSON.stringify(lock)}`);
  return lock;
}
