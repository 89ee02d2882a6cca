import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import * as scripts from '../../../../infra/sandbox/shell/scripts.ts';
import { repositoryRoot } from '../../../helpers/sources.ts';

const { keeperDirectory: _, ...texts } = scripts;

describe('a shell script', () => {
  for (const [name, text] of Object.entries(texts)) {
    it(`${name} is valid POSIX sh`, () => {
      const { status, stderr } = spawnSync('sh', ['-n', '-c', text], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    });
  }

  it('that builds the image of the tasks is valid POSIX sh', () => {
    const { status, stderr } = spawnSync('sh', ['-n', join(repositoryRoot, 'infra/images/build.sh')], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
  });
});
