import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Lock, tryLock, withLock } from '../../../infra/process/lock.mjs';
import { isRunning, processIdentity } from '../../../infra/process/process-identity.mjs';

describe('a lock file', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-lock-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('names its living holder until it is released', () => {
    const path = join(directory, 'below/held');
    const lock = taken(path);
    assert.deepEqual(tryLock(path), { holder: processIdentity(process.pid) });
    lock.release();
    taken(path).release();
  });

  it('is void when its holder has ended, when its pid is another process by now, and when it is no lock', async () => {
    const path = join(directory, 'stale');
    const child = spawn(process.execPath, ['-e', '0']);
    await once(child, 'exit');
    for (const content of [
      JSON.stringify({ pid: child.pid, startedAt: '1' }),
      JSON.stringify({ ...processIdentity(process.pid), startedAt: 'earlier' }),
      'torn',
    ]) {
      await writeFile(path, content);
      taken(path).release();
    }
  });

  it('lasts as long as the process to which it was handed over', async () => {
    const path = join(directory, 'handed-over');
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await once(child, 'spawn');
    assert.ok(child.pid !== undefined);
    taken(path).handOver(child.pid);
    assert.deepEqual(tryLock(path), { holder: processIdentity(child.pid) });
    const identity = processIdentity(child.pid);
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(isRunning(identity), false);
    taken(path).release();
  });

  it('lets one of many in at a time, over a stale file too', async () => {
    const path = join(directory, 'contended');
    await writeFile(path, JSON.stringify({ pid: 1, startedAt: 'never' }));
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      assert.equal(inside, 1);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(path, work)));
  });

  it('is released when the work fails, and waiting for it ends when the caller gives up', async () => {
    const path = join(directory, 'failing');
    await assert.rejects(
      withLock(path, () => Promise.reject(new Error('the work'))),
      /the work/,
    );
    const lock = taken(path);
    await assert.rejects(
      withLock(path, () => {}, { signal: AbortSignal.timeout(10) }),
      { name: 'TimeoutError' },
    );
    lock.release();
  });
});

function taken(path: string): Lock {
  const lock = tryLock(path);
  assert.ok('release' in lock, `expected ${path} to be free, got ${JSON.stringify(lock)}`);
  return lock;
}
