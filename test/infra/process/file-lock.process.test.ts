import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type FileLock, tryLock, withLock } from '../../../infra/process/file-lock.ts';
import { until } from '../../helpers/until.ts';

const module = join(import.meta.dirname, '../../../infra/process/file-lock.ts');

describe('a file lock', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-lock-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('names its holder until it is released, and leaves no file', async () => {
    const path = join(directory, 'below/first');
    const lock = await takeLock(path);
    assert.deepEqual(await tryLock(path), { holder: { pid: process.pid } });
    await lock.nameHolder(7);
    assert.deepEqual(await tryLock(path), { holder: { pid: 7 } });
    await lock.release();
    assert.deepEqual(await readdir(join(directory, 'below')), []);
    await (await takeLock(path)).release();
  });

  it('is free when its holder was killed, whatever the file says', async () => {
    const path = join(directory, 'killed');
    const { holder } = await startHolder(path, { withHeir: false });
    assert.deepEqual(await tryLock(path), { holder: { pid: holder.pid } });
    await kill(holder);
    await (await takeLock(path)).release();
    await writeFile(path, 'torn');
    await (await takeLock(path)).release();
  });

  it('lasts as long as a child process that inherited it', async () => {
    const path = join(directory, 'inherited');
    const { holder, heir } = await startHolder(path, { withHeir: true });
    await kill(holder);
    assert.deepEqual(await tryLock(path), { holder: { pid: heir } });
    process.kill(heir, 'SIGKILL');
    let lock = await tryLock(path);
    await until(async () => {
      if ('holder' in lock) lock = await tryLock(path);
      return 'release' in lock;
    });
    assert.ok('release' in lock);
    await lock.release();
  });

  it('lets one caller at a time do its work', async () => {
    const path = join(directory, 'contended');
    let working = 0;
    const work = async (): Promise<void> => {
      working += 1;
      assert.equal(working, 1);
      await new Promise((resolve) => setImmediate(resolve));
      working -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(path, work)));
  });

  it('is released when the work fails, and a wait for it ends when the caller gives up', async () => {
    const path = join(directory, 'failing');
    await assert.rejects(
      withLock(path, () => Promise.reject(new Error('the work'))),
      /the work/,
    );
    const lock = await takeLock(path);
    const waits: unknown[] = [];
    await assert.rejects(
      withLock(path, () => {}, { signal: AbortSignal.timeout(10), onWait: (holder) => waits.push(holder) }),
      { name: 'TimeoutError' },
    );
    assert.deepEqual(waits, [{ pid: process.pid }]);
    await lock.release();
  });
});

async function takeLock(path: string): Promise<FileLock> {
  const lock = await tryLock(path);
  assert.ok('release' in lock, `expected ${path} to be free, got ${JSON.stringify(lock)}`);
  return lock;
}

/** Starts a process that holds the lock, and on request a child of it that inherits the lock. */
async function startHolder(
  path: string,
  { withHeir }: { readonly withHeir: boolean },
): Promise<{ readonly holder: ChildProcess; readonly heir: number }> {
  const script = `
    import { spawn } from 'node:child_process';
    import { tryLock } from ${JSON.stringify(module)};
    const lock = await tryLock(${JSON.stringify(path)});
    const forever = ['-e', 'setInterval(() => {}, 1000)'];
    let heir = 0;
    if (${withHeir}) {
      heir = spawn(process.execPath, forever, { stdio: ['ignore', 'ignore', 'ignore', lock.fd] }).pid;
      await lock.nameHolder(heir);
    }
    console.log(heir);
    setInterval(() => lock, 1000);
  `;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(holder.stdout, 'data');
  return { holder, heir: Number(String(line)) };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await until(() => child.exitCode !== null || child.signalCode !== null);
}
