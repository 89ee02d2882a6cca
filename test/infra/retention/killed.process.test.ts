import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { until } from '../../helpers/until.ts';

const names = Array.from({ length: 10 }, (_, index) => `pi-${index.toString(16).padStart(16, '0')}`);
const kept = 'pi-ffffffffffffffff';

describe('a pass of retention that is killed again and again', () => {
  let home: string;
  let agents: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-killed-'));
    agents = join(home, 'cache/agents');
    await mkdir(join(home, 'logs'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  async function writeAgents(filesEach: number): Promise<void> {
    for (const name of [...names, kept]) {
      await mkdir(join(agents, name, 'files'), { recursive: true });
      for (let index = 0; index < filesEach; index += 1)
        await writeFile(join(agents, name, `files/${index}`), 'content');
      if (name !== kept) await utimes(join(agents, name), 0, 0);
    }
  }
  const pass = () =>
    spawn(process.execPath, [join(import.meta.dirname, 'pass.ts'), home], { stdio: ['ignore', 'inherit', 'inherit'] });
  /** Returns the number of files of each directory that has its name. */
  async function whole(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const name of await readdir(agents)) {
      if (name.startsWith('.removed-')) continue;
      // A directory that loses its name between two looks is not there any more.
      const files = await readdir(join(agents, name, 'files')).catch(() => null);
      if (files !== null) found.set(name, files.length);
    }
    return found;
  }

  /** Kills passes until one ends before that, and returns the number of kills. No directory may ever lack a part of its files. */
  async function killPasses(filesEach: number): Promise<number> {
    for (let kills = 0; ; kills += 1) {
      const before = (await whole()).size;
      const child = pass();
      const ended = once(child, 'exit');
      await until(async () => child.exitCode !== null || (await whole()).size < before);
      child.kill('SIGKILL');
      await ended;
      for (const [name, files] of await whole()) assert.equal(files, filesEach, name);
      if (child.exitCode === 0) return kills;
    }
  }

  it('leaves no half of a directory under its name, and the pass that ends removes the rest', async () => {
    // A pass that ends before its kill is tried again with more to remove.
    for (let filesEach = 200, kills = 0; kills === 0; filesEach *= 2) {
      await writeAgents(filesEach);
      kills = await killPasses(filesEach);
    }
    assert.deepEqual(await readdir(agents), [kept]);
  });

  it('loses no line of a log whose rotation was killed', async () => {
    const [logs, log] = [join(home, 'logs'), join(home, 'logs/host.log')];
    const lines: string[] = [];
    // A kill that comes after the cut is tried again with a longer log.
    for (let length = 70; lines.length === 0 || (await stat(log)).size === 0; length = Math.min(2 * length, 280)) {
      for (const name of await readdir(logs)) await rm(join(logs, name));
      lines.splice(0, lines.length, ...Array.from({ length }, (_, index) => `${index} ${'x'.repeat(2 ** 20)}`));
      await writeFile(log, `${lines.join('\n')}\n`);
      const child = pass();
      const exit = once(child, 'exit');
      await until(async () => (await readdir(logs)).includes('host.log.part') || child.exitCode !== null);
      child.kill('SIGKILL');
      await exit;
    }
    const [code] = await once(pass(), 'exit');
    assert.equal(code, 0);
    assert.equal((await stat(log)).size, 0);
    assert.deepEqual((await readdir(join(home, 'logs'))).sort(), ['host.log', 'host.log.1.gz']);
    const text = gunzipSync(await readFile(`${log}.1.gz`)).toString();
    assert.equal(text, `${lines.join('\n')}\n`);
  });
});
