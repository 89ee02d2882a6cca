import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { createDirectSpawner } from '../../../../infra/process/spawner/direct.ts';
import type { CollectedCommand, Spawner } from '../../../../infra/process/spawner/spawner.ts';
import { createHelperSpawner } from '../../../../infra/process/spawner/through-helper.ts';
import { until } from '../../../helpers/until.ts';

const directory = mkdtempSync(join(tmpdir(), 'temper-spawner-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const env = { PATH: '/usr/bin:/bin' };
const sh = (script: string, rest: Partial<CollectedCommand> = {}): CollectedCommand => ({
  argv: ['/bin/sh', '-c', script],
  env,
  maxOutputBytes: 1_000,
  ...rest,
});
/** Writes its pid to a file and sleeps. */
const sleeper = (file: string): CollectedCommand => sh(`echo $$ >${file}.new; mv ${file}.new ${file}; exec sleep 600`);

for (const [title, create] of [
  ['a spawner that forks its own process', createDirectSpawner],
  ['a spawner through a helper', createHelperSpawner],
] as const) {
  describe(title, () => {
    const spawner = create();
    after(() => spawner.close());
    spawnerContract(spawner);
  });
}

function spawnerContract(spawner: Spawner): void {
  it('passes input, environment and the report file, and collects output and exit code', async () => {
    const reportFile = join(directory, 'report');
    writeFileSync(reportFile, '');
    const stdin = Buffer.from([0, 255, 10]);
    const script = 'cat; echo "$SECRET $(pwd)" >&2; echo reported >&5; exit 7';
    const ended = await spawner.start(sh(script, { stdin, env: { ...env, SECRET: 'a\nb' }, reportFile })).ended;
    assert.deepEqual(ended, { exitCode: 7, stdout: stdin, stderr: Buffer.from('a\nb /\n'), truncated: false });
    assert.equal(readFileSync(reportFile, 'utf8'), 'reported\n');
  });

  it('keeps the head of a flood and lets its writer finish', async () => {
    const ended = await spawner.start(sh('head -c 5000000 /dev/zero; echo end >&2')).ended;
    assert.deepEqual([ended.exitCode, ended.stdout.length, ended.truncated], [0, 1_000, true]);
    assert.equal(String(ended.stderr), 'end\n');
  });

  it('returns megabytes of output as they are', async () => {
    const maxOutputBytes = 20 * 2 ** 20;
    const { stdout } = await spawner.start(sh(`head -c ${maxOutputBytes} /dev/zero`, { maxOutputBytes })).ended;
    assert.deepEqual(stdout, Buffer.alloc(maxOutputBytes));
  });

  it('runs many commands at once and tells their results apart', async () => {
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) => spawner.start(sh(`echo ${index}; exit ${index}`)).ended),
    );
    results.forEach(({ exitCode, stdout }, index) => {
      assert.deepEqual([exitCode, String(stdout)], [index, `${index}\n`]);
    });
  });

  it('kills a command with its children', async () => {
    const file = join(directory, 'killed');
    const command = spawner.start(sh(`sleep 600 & echo $! >${file}.new; mv ${file}.new ${file}; wait`));
    const child = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
    command.kill();
    assert.equal((await command.ended).exitCode, 137);
    await until(() => !isAlive(child));
    rmSync(file);
  });

  it('rejects for a program that does not exist, and says its code', async () => {
    await assert.rejects(spawner.start({ ...sh(''), argv: ['/no/such/program'] }).ended, { code: 'ENOENT' });
    await assert.rejects(spawner.start(sh('true', { reportFile: '/no/such/file' })).ended, { code: 'ENOENT' });
    await assert.rejects(spawner.launch({ argv: ['/no/such/program'], env }), { code: 'ENOENT' });
  });

  it('launches a command in a session of its own, and returns once it has closed its stdout', async () => {
    const file = join(directory, 'launched');
    const script = `echo $$ >${file}; exec >/dev/null; exec sleep 600`;
    await spawner.launch({ argv: ['/bin/sh', '-c', script], env });
    const pid = Number(readFileSync(file, 'utf8'));
    assert.equal(isAlive(pid), true);
    assert.equal(sessionOf(pid), pid);
    await spawner.close();
    assert.equal(isAlive(pid), true, 'it outlives its spawner');
    process.kill(pid, 'SIGKILL');
  });

  it('ends what it started when it is closed, and can be used afterwards', async () => {
    const file = join(directory, 'closed');
    const ended = spawner.start(sleeper(file)).ended.catch(() => undefined);
    const pid = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
    await spawner.close();
    await ended;
    await until(() => !isAlive(pid));
    assert.equal((await spawner.start(sh('exit 3')).ended).exitCode, 3);
    rmSync(file);
  });
}

describe('the helper of a spawner', () => {
  const spawner = createHelperSpawner();
  afterEach(() => spawner.close());

  it('fails the commands of a killed helper by its own error, and starts another helper', async () => {
    const file = join(directory, 'lost');
    const lost = assert.rejects(spawner.start(sleeper(file)).ended, { name: 'HelperLostError' });
    const pid = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
    process.kill(parentOf(pid), 'SIGKILL');
    await lost;
    assert.equal((await spawner.start(sh('exit 4')).ended).exitCode, 4);
    process.kill(pid, 'SIGKILL');
  });

  it('ends with its commands when its parent is killed, and ignores signals until then', async () => {
    const file = join(directory, 'orphan');
    const module = join(import.meta.dirname, '../../../../infra/process/spawner/through-helper.ts');
    const code = `import { createHelperSpawner } from ${JSON.stringify(module)};
      await createHelperSpawner().start(${JSON.stringify(sleeper(file))}).ended;`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const pid = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
    const helper = parentOf(pid);
    assert.equal(parentOf(helper), parent.pid);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(helper, signal);
    assert.equal(isAlive(helper), true);
    assert.equal(isAlive(pid), true);
    parent.kill('SIGKILL');
    await once(parent, 'close');
    await until(() => !isAlive(helper) && !isAlive(pid));
  });

  it('does not keep its parent running, and has none of its environment', async () => {
    const module = join(import.meta.dirname, '../../../../infra/process/spawner/through-helper.ts');
    const code = `import { createHelperSpawner } from ${JSON.stringify(module)};
      const command = { argv: ['/bin/sh', '-c', 'tr "\\\\0" "\\\\n" </proc/$PPID/environ'], env: {}, maxOutputBytes: 9999 };
      process.stdout.write((await createHelperSpawner().start(command).ended).stdout);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', code], {
      env: { ...process.env, SECRET: 'hush-hush' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const chunks: Buffer[] = [];
    parent.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    const [exitCode] = await once(parent, 'close');
    assert.equal(exitCode, 0);
    assert.match(String(Buffer.concat(chunks)), /^NODE_CHANNEL_/);
    assert.doesNotMatch(String(Buffer.concat(chunks)), /hush-hush|^PATH=/m);
  });
});

const isAlive = (pid: number): boolean => fieldsOf(pid)[0] !== 'Z';
const parentOf = (pid: number): number => Number(fieldsOf(pid)[1]);
const sessionOf = (pid: number): number => Number(fieldsOf(pid)[3]);

/** The fields of /proc/PID/stat from the state on; those of a zombie if the process is gone. */
function fieldsOf(pid: number): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return ['Z'];
  }
}
