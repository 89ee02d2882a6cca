import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { InsideRequest, WriteResult } from '../../../../infra/sandbox/carry/inside.ts';
import { insideProgram } from '../../../../infra/sandbox/carry/program.ts';

it('carries changes from one process to another, and refuses bytes that were cut', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'inside-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const program = await insideProgram();
  const run = (what: InsideRequest['do'], directory: string, input: Buffer) => {
    const scope = { root: join(root, directory), uid: process.getuid?.() ?? 0, starts: ['/'], fixed: [] };
    const request: InsideRequest = { do: what, scope, limits: { files: 100, characters: 10_000 } };
    const words = ['--input-type=module', '--eval', program, JSON.stringify(request)];
    return spawnSync(process.execPath, words, { input, maxBuffer: 2 ** 26 });
  };
  for (const name of ['from', 'to', 'cut']) {
    mkdirSync(join(root, name, 'old'), { recursive: true });
    writeFileSync(join(root, name, 'old/in'), 'in');
    writeFileSync(join(root, name, 'gone'), 'gone');
  }
  const noted = run('note', 'from', Buffer.alloc(0));
  assert.equal(noted.status, 0, noted.stderr.toString());
  renameSync(join(root, 'from/old'), join(root, 'from/new'));
  rmSync(join(root, 'from/gone'));
  writeFileSync(join(root, 'from/large'), Buffer.alloc(2 ** 20, 'x'));

  const read = run('read', 'from', noted.stdout);
  assert.equal(read.status, 0, read.stderr.toString());
  const written = run('write', 'to', read.stdout);
  const result: WriteResult = JSON.parse(written.stdout.toString());
  assert.deepEqual(result, { refusal: null });
  assert.deepEqual(readdirSync(join(root, 'to')).sort(), ['large', 'new']);
  assert.equal(readFileSync(join(root, 'to/new/in'), 'utf8'), 'in');
  assert.equal(readFileSync(join(root, 'to/large')).length, 2 ** 20);

  const cut = run('write', 'cut', read.stdout.subarray(0, -20));
  assert.notEqual(cut.status, 0);
  assert.match(cut.stderr.toString(), /ended before its files/);
});
