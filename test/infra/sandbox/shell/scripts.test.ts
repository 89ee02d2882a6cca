import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import * as scripts from '../../../../infra/sandbox/shell/scripts.ts';
import { repositoryRoot } from '../../../helpers/sources.ts';

const { keeperDirectory: _, sentLogBytes: __, ...texts } = scripts;

describe('a shell script', () => {
  for (const [name, text] of Object.entries(texts)) {
    it(`${name} is valid POSIX sh`, () => {
      const { status, stderr } = spawnSync('sh', ['-n', '-c', text], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    });
  }

  it('that unpacks files for a command tells a tar that was killed from one that failed', (t) => {
    const own = mkdtempSync(join(tmpdir(), 'temper-tar-'));
    t.after(() => rmSync(own, { recursive: true }));
    const codes = ['kill -9 $$', 'exit 2'].map((end) => {
      writeFileSync(join(own, 'tar'), `#!/bin/sh\n${end}\n`, { mode: 0o755 });
      const env = { PATH: `${own}:${process.env.PATH}` };
      return spawnSync('sh', ['-c', scripts.detached, 'temper', own, 'key', 'token'], { env, input: '' }).status;
    });
    assert.deepEqual(codes, [97, 96]);
  });

  it('that builds the image of the tasks is valid POSIX sh', () => {
    const { status, stderr } = spawnSync('sh', ['-n', join(repositoryRoot, 'infra/images/build.sh')], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
  });
});
