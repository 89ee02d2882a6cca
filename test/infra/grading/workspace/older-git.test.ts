import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { commitScript } from '../../../../infra/grading/workspace/base-commit-script.ts';

/** Git before 2.31 does not know these variables, and distributions gave it the question who owns a repository all the same. */
const older = '#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec /usr/bin/git "$@"\n';

it("root takes over another account's repository with a git that reads no settings from the environment", {
  skip: process.getuid?.() === 0 ? false : 'giving files to another account needs root',
}, async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-older-git-'));
  try {
    const workdir = join(home, 'app');
    await mkdir(join(home, 'bin'));
    await mkdir(workdir);
    await writeFile(join(home, 'bin/git'), older, { mode: 0o755 });
    await writeFile(join(workdir, 'a'), 'a\n');
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: workdir, encoding: 'utf8' });
    git('init', '-q', '.');
    git('add', '-A');
    git('commit', '-qm', 'a');
    await writeFile(join(workdir, 'b'), 'b\n');
    execFileSync('chown', ['-R', '1001', workdir]);
    const PATH = `${join(home, 'bin')}:/usr/bin:/bin`;
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', commitScript], {
      cwd: workdir,
      env: { PATH },
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr], [0, '']);
    const safe = ['-c', `safe.directory=${workdir}`];
    assert.equal(git(...safe, 'show', '--format=', '--name-only', stdout.trim()), 'b\n');
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
