import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '../../helpers/sources.ts';

const run = promisify(execFile);

describe('the installed package', () => {
  let directory = '';
  let installed = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-package-'));
    await run('npm', ['pack', '--pack-destination', directory, '--loglevel=error'], { cwd: ROOT });
    const [archive] = await readdir(directory);
    await run('tar', ['-xzf', join(directory, archive ?? ''), '-C', directory]);
    installed = join(directory, 'package');
    // As npm would install them: the same versions, below the same folder.
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('holds compiled code and what it reads, and neither sources nor tests', async () => {
    const files = await readdir(installed, { recursive: true });
    assert.deepEqual(
      files.filter((file) => /\.m?ts$|\.test\.|^test\//.test(file)),
      [],
    );
    for (const file of [
      'dist/workers/cli.js',
      'dist/workflow-bundle.js',
      'dist/infra/temporal/cli/go.sum',
      'dist/infra/agents/pi/package-lock.json',
      'LICENSE',
    ]) {
      assert.ok(files.includes(file), `expected ${file} in the package`);
    }
  });

  it('runs its command', async () => {
    const { stdout } = await run(process.execPath, [join(installed, 'infra/setup/temper.mjs'), '--help']);
    assert.match(stdout, /Usage: temper/);
  });

  it('takes its prebuilt workflow bundle', async () => {
    const bundle = join(installed, 'dist/infra/temporal/bundle.js');
    const script = `const { locateWorkflowBundle } = await import(${JSON.stringify(bundle)}); console.log((await locateWorkflowBundle({})).codePath);`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
    assert.equal(stdout.trim(), join(installed, 'dist/workflow-bundle.js'));
  });
});
