import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

const root = join(import.meta.dirname, '../../..');

/** Runs the commands of the README's section on one's own repository as they are printed. */
describe('the example of the README', () => {
  let home: string;
  let directory: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-readme-'));
    directory = join(home, 'work');
    await mkdir(join(directory, 'node_modules/.bin'), { recursive: true });
    await symlink(join(root, 'infra/setup/temper.mjs'), join(directory, 'node_modules/.bin/temper'));
  });
  after(async () => {
    await shell('npx temper down');
    await rm(home, { recursive: true, force: true });
  });

  async function shell(script: string) {
    const others = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|TEMPER_|npm_)/.test(name));
    const child = spawn('bash', ['-euxc', script], {
      cwd: directory,
      env: {
        ...Object.fromEntries(others),
        TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
        TEMPER_HOME: join(home, 'temper'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { stdout, log: `${stdout}\n${stderr}`, code };
  }

  it('validates a task, solves it and trains on it', async () => {
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    const [, section = assert.fail()] = readme.split('## Your own repository\n');
    const [start = assert.fail()] = /npx temper up --detach/.exec(section) ?? [];
    const [, example = assert.fail()] = /```sh\n(.*?)```/s.exec(section) ?? [];
    const up = await shell(`${start} --port auto`);
    assert.equal(up.code, 0, up.log);
    const { code, stdout, log } = await shell(example);
    assert.equal(code, 0, log);
    assert.match(stdout, /^1 task, 1 valid$/m);
    assert.match(stdout, /^1 rollout: scored 1, mean reward 1\.000/m);
    // The embedded policy knows no Python, so that all rewards are 0 and there is nothing to learn.
    assert.match(log, /^done, with 0 updates in 1 step/m);
  });
});
