import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { withoutEscapingLinks } from '../../../../infra/grading/patch/patch-links.ts';

/** Returns git's own diff of a tree with these links and files. */
function diffOf(make: (directory: string) => void): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'temper-links-'));
  const git = (...args: string[]): Buffer => execFileSync('git', ['-C', directory, ...args]);
  try {
    git('init', '-q');
    make(directory);
    git('add', '-A');
    return git('diff', '--cached', '--binary', '--no-renames', '4b825dc642cb6eb9a060e54bf8d69288fbee4904');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

describe('withoutEscapingLinks', () => {
  it('drops links that leave the workspace, and counts them', () => {
    const patch = diffOf((directory) => {
      symlinkSync('/tests/test.sh', join(directory, 'absolute'));
      symlinkSync('../../logs', join(directory, 'climbing'));
      symlinkSync('inside.txt', join(directory, 'link'));
      mkdirSync(join(directory, 'deep/er'), { recursive: true });
      symlinkSync('../../inside.txt', join(directory, 'deep/er/up-but-inside'));
      symlinkSync('../../../logs', join(directory, 'deep/er/one-too-far'));
      symlinkSync('link/../..', join(directory, 'through-a-link'));
      writeFileSync(join(directory, 'inside.txt'), 'diff --git a/x b/x\nnew file mode 120000\n+/etc\n');
      writeFileSync(join(directory, 'binary'), Buffer.from([0, 1, 2, 255, 254, 10, 13]));
    });
    const result = withoutEscapingLinks(patch);
    assert.deepEqual([result.files, result.dropped.length], [4, 4]);
    const text = result.patch.toString('latin1');
    assert.doesNotMatch(text, /absolute|climbing|too-far|through-a-link/);
    assert.match(text, /b\/link\n/);
    assert.match(text, /GIT binary patch/);
  });

  it('does not end a line at a carriage return, so that content cannot imitate a part', () => {
    const patch = diffOf((directory) => {
      writeFileSync(join(directory, 'old-mac'), 'a\rdiff --git a/x b/x\rnew file mode 120000\r@@ -0,0 +1 @@\r+/etc');
      writeFileSync(join(directory, 'odd "na\nme"'), 'odd\n');
    });
    assert.deepEqual(withoutEscapingLinks(patch), { patch, files: 2, dropped: [] });
  });

  it('returns a patch without such links unchanged', () => {
    const patch = diffOf((directory) => writeFileSync(join(directory, 'ä.txt'), 'grün\r\n\xff'));
    assert.equal(withoutEscapingLinks(patch).patch, patch);
    assert.deepEqual(withoutEscapingLinks(Buffer.alloc(0)), { patch: Buffer.alloc(0), files: 0, dropped: [] });
  });
});
