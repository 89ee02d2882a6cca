import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { returnedIn, straceArguments } from '../../helpers/store/strace.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'temper-durable-')));
after(() => rmSync(root, { recursive: true, force: true }));

/** Runs everything that must outlast a power cut under strace, once for all tests. */
function traced() {
  const output = join(root, 'trace');
  const program = join(import.meta.dirname, '../../helpers/store/durable-work.ts');
  const work = join(root, 'work');
  // A gateway makes the directory of its journals at its start.
  for (const host of ['lost', 'own']) mkdirSync(join(work, 'journals', host), { recursive: true });
  const { status, stderr } = spawnSync('strace', straceArguments(output, [process.execPath, program, work]), {
    encoding: 'utf8',
    env: { ...process.env, UV_USE_IO_URING: '0' },
  });
  assert.equal(status, 0, stderr);
  return returnedIn(readFileSync(output, 'utf8'), work);
}

it('keeps what has been written through a power cut, from when its call returns', () => {
  const found = traced();
  const lost = found.filter(({ unsafe }) => unsafe.length > 0);
  assert.deepEqual(Object.fromEntries(lost.map(({ operation, unsafe }) => [operation, unsafe])), {});
  const named = Object.fromEntries(found.map((one) => [one.operation, one.named.join(', ')]));
  assert.equal(found.length, 17, JSON.stringify(named));
  assert.match(named.record ?? '', /link group-1\.json/);
  assert.match(named['replaced record'] ?? '', /rename group-1\.json/);
  assert.match(named['session journal'] ?? '', /create s-1\.jsonl/);
  assert.match(named.checkpoint ?? '', /mkdir weights.*rename v1/);
  for (const name of [
    'stack id',
    'stack key',
    'machine',
    'lease',
    'renewal',
    'blob',
    'blob of another writer',
    'kept result',
  ])
    assert.notEqual(named[name], '', name);
});
