import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { removeTree } from '../../../../infra/sandbox/local/remove-tree.ts';

it('removes a tree of any depth with names that are no text, links that lead out of it, and a large file', async (t) => {
  const outside = mkdtempSync(join(tmpdir(), 'remove-tree-'));
  t.after(() => rmSync(outside, { recursive: true, force: true }));
  const tree = join(outside, 'tree');
  mkdirSync(join(tree, 'deep/deeper'), { recursive: true });
  writeFileSync(join(outside, 'kept'), 'kept');
  symlinkSync(outside, join(tree, 'deep/link'));
  symlinkSync('/nowhere', join(tree, 'dangling'));
  writeFileSync(Buffer.concat([Buffer.from(`${tree}/deep/`), Buffer.from([0xff, 0xfe])]), 'not UTF-8');
  const name = 'n'.repeat(200);
  // Each step is relative to the one before, as the kernel takes no longer path.
  execFileSync('bash', ['-c', `for n in $(seq 60); do mkdir ${name} && cd -P ${name} || exit 1; done`], { cwd: tree });
  writeFileSync(join(tree, 'deep/deeper/large'), Buffer.alloc(2 ** 20 + 1));

  await removeTree(tree);

  assert.deepEqual([existsSync(tree), existsSync(join(outside, 'kept'))], [false, true]);
  await removeTree(tree);
});

it('rejects with the code of what failed, and then still removes others', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'remove-tree-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const refused = removeTree(join(directory, 'n'.repeat(300)));
  const removed = removeTree(directory);
  await assert.rejects(refused, { code: 'ENAMETOOLONG' });
  await removed;
  assert.equal(existsSync(directory), false);
});
