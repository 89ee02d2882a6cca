import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import * as scripts from '../../../../infra/sandbox/shell/scripts.ts';
import { repositoryRoot } from '../../../helpers/sources.ts';
import { until } from '../../../helpers/until.ts';

const { keeperDirectory, sentLogBytes: _, notAdopted: __, ...texts } = scripts;

/** Waits for a FIFO of a recorder, and returns the directory that has it. */
async function fifo(own: string, name: string): Promise<string> {
  const directory = join(own, 'job');
  await until(() => existsSync(join(directory, `${name}.token`)));
  return directory;
}

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

  it('that tells the age of a process counts by the boot clock, whatever the wall clock showed at its start', async (t) => {
    const own = mkdtempSync(join(tmpdir(), 'temper-age-'));
    t.after(() => rmSync(own, { recursive: true }));
    const here = (text: string): string => text.replaceAll(keeperDirectory, own);
    const age = (): number => Number(spawnSync('sh', ['-c', here(scripts.age), 'temper', 'job']).stdout);
    assert.equal(age(), 0);
    const recorder = spawn('sh', ['-c', here(scripts.recorder), 'temper', 'job', 'token', '100', '100', '0']);
    writeFileSync(join(await fifo(own, 'out'), 'out.token'), '');
    const ended = once(recorder, 'close');
    writeFileSync(join(await fifo(own, 'end'), 'end.token'), '0\n');
    await ended;
    const live = join(own, 'job', 'live');
    const startedSec = Number(readFileSync(live, 'utf8'));
    assert.ok(startedSec > uptime() - 60 && startedSec <= uptime(), `${startedSec} s`);
    // As if the clock had been set forward by an hour since.
    utimesSync(live, Date.now() / 1000 - 3_600, Date.now() / 1000 - 3_600);
    writeFileSync(live, `${startedSec - 5}\n`);
    assert.ok(age() >= 5 && age() < 65, `${age()} s`);
    writeFileSync(live, 'forged');
    assert.equal(age(), 0);
  });

  it('that tells the state of a process knows one that was killed, although its parent has not reaped it', async (t) => {
    const own = mkdtempSync(join(tmpdir(), 'temper-zombie-'));
    t.after(() => rmSync(own, { recursive: true }));
    // The parent waits for an input, and reaps nothing meanwhile.
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; read -r line; kill $! 2>/dev/null'], { stdio: 'pipe' });
    t.after(() => parent.stdin.end('\n'));
    const [printed] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(String(printed));
    mkdirSync(join(own, 'job'));
    writeFileSync(join(own, 'job', 'live'), '0\n');
    const state = (name: 'status' | 'watchStatus'): string => {
      const text = texts[name].replaceAll(keeperDirectory, own);
      return spawnSync('sh', ['-c', text, 'temper', 'job', '0'], { encoding: 'utf8' }).stdout.trim();
    };
    const gone = 'unknown its recorder is gone without a result';
    assert.equal(state('status'), gone);
    writeFileSync(join(own, 'job', 'pid'), `${pid}\n`);
    assert.equal(state('status'), 'running');
    process.kill(pid, 'SIGKILL');
    await until(() => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '));
    assert.deepEqual([state('status'), state('watchStatus')], [gone, gone]);
    parent.stdin.end('\n');
    await once(parent, 'close');
    assert.equal(state('status'), gone);
  });

  it('that builds the image of the tasks is valid POSIX sh', () => {
    const { status, stderr } = spawnSync('sh', ['-n', join(repositoryRoot, 'infra/images/build.sh')], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
  });
});
