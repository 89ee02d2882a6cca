import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isRunning, processIdentity } from '../../../infra/process/process-identity.mjs';
import { until } from '../../helpers/until.ts';

const watcher = join(import.meta.dirname, '../../../infra/process/npm-shell.mjs');
/** A program that says when it has started, and when it learns that npm has ended. */
const program = `#!${process.execPath}
import { writeFileSync } from 'node:fs';
import { onNpmShellEnd } from ${JSON.stringify(watcher)};
onNpmShellEnd(() => { writeFileSync('ended', ''); process.exit(0); });
process.on('SIGINT', () => { writeFileSync('interrupted', ''); process.exit(0); });
setInterval(() => undefined, 1000);
writeFileSync('pid', String(process.pid));
`;

/** npm runs a program in a shell, and a signal that ends npm ends only the shell. */
describe('a program that npm runs', () => {
  let directory: string;
  const groups: number[] = [];
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-npm-'));
    const scripts = { background: 'held-by-npm & sleep 1000', direct: 'exec node node_modules/.bin/held-by-npm' };
    await write(
      'package.json',
      JSON.stringify({ name: 'outer', version: '1.0.0', private: true, type: 'module', scripts }),
    );
    await write('node_modules/.bin/held-by-npm', program);
    await chmod(join(directory, 'node_modules/.bin/held-by-npm'), 0o755);
    await write('node_modules/.bin/package.json', JSON.stringify({ type: 'module' }));
  });
  after(async () => {
    for (const group of groups) endGroup(group);
    await rm(directory, { recursive: true });
  });

  async function write(name: string, text: string): Promise<void> {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }

  async function npm(...args: readonly string[]): Promise<{ readonly wrapper: ChildProcess; readonly pid: number }> {
    for (const name of ['pid', 'ended', 'interrupted']) await rm(join(directory, name), { force: true });
    // The shell of this repository's scripts, which npm passes on, would be replaced by the program.
    const wrapper = spawn('npm', ['--script-shell=sh', ...args], { cwd: directory, stdio: 'ignore', detached: true });
    await once(wrapper, 'spawn');
    if (wrapper.pid !== undefined) groups.push(wrapper.pid);
    const pid = await until(async () => Number(await readFile(join(directory, 'pid'), 'utf8').catch(() => '')) || null);
    return { wrapper, pid };
  }

  const exists = (name: string): Promise<boolean> =>
    readFile(join(directory, name)).then(
      () => true,
      () => false,
    );

  it('learns that a SIGTERM has ended `npm exec`, and so `npx`', async () => {
    const { wrapper } = await npm('exec', '--offline', 'held-by-npm');
    wrapper.kill('SIGTERM');
    await until(() => exists('ended'));
  });

  it('is not ended with its shell if the shell started it in the background', async () => {
    const { wrapper, pid } = await npm('run', 'background');
    const identity = processIdentity(pid);
    wrapper.kill('SIGTERM');
    await until(async () => (await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[3] !== String(wrapper.pid));
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // three times the interval at which it looks
    assert.ok(isRunning(identity));
    assert.ok(!(await exists('ended')));
  });

  it('receives a SIGINT itself if the script replaces the shell, as those of this package do', async () => {
    const { scripts } = JSON.parse(await readFile(join(import.meta.dirname, '../../../package.json'), 'utf8'));
    for (const [name, script] of Object.entries<string>(scripts)) {
      if (script.includes('run.mjs') && name !== 'check') assert.match(script, /^exec node /, name);
    }
    const { wrapper } = await npm('run', 'direct');
    wrapper.kill('SIGINT');
    await until(() => exists('interrupted'));
  });
});

function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // All its processes have ended.
  }
}
