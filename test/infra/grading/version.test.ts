import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { digestOf, graderVersion } from '../../../infra/grading/version.ts';
import { repositoryRoot } from '../../helpers/sources.ts';

describe('the version of the grader', () => {
  let copy: string;
  before(async () => {
    copy = await mkdtemp(join(tmpdir(), 'temper-grader-version-'));
    await cp(join(repositoryRoot, 'infra/grading'), join(copy, 'grading'), { recursive: true });
    await mkdir(join(copy, 'sandbox'));
    await writeFile(join(copy, 'sandbox/limits.ts'), 'export {};\n');
    await writeFile(join(copy, 'other.ts'), 'export {};\n');
  });
  after(() => rm(copy, { recursive: true, force: true }));

  it('depends on the sources, not on their directory', () => {
    assert.match(graderVersion, /^[0-9a-f]{12}$/);
    assert.equal(
      digestOf(join(copy, 'grading'), ['.'], []),
      digestOf(join(repositoryRoot, 'infra/grading'), ['.'], []),
    );
  });

  it('changes with any file of the grader or the sandbox, and with the other files', async () => {
    const version = (): string => digestOf(join(copy, 'grading'), ['.', '../sandbox'], ['../other']);
    const first = version();
    await writeFile(join(copy, 'grading/flags/test-run.ts'), '// changed\n');
    const second = version();
    await writeFile(join(copy, 'other.ts'), 'export const changed = true;\n');
    const third = version();
    await writeFile(join(copy, 'sandbox/limits.ts'), 'export const tighter = true;\n');
    assert.equal(new Set([first, second, third, version()]).size, 4);
  });
});
