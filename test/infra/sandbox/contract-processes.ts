import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { until } from '../../helpers/until.ts';
import { type Bench, foreground, sh } from './contract.ts';

const agent = { env: {}, account: 'agent' } as const;
/** A program that the contract's sandboxes need: this Node. */
export const runtime = {
  source: dirname(process.execPath),
  target: '/runtime',
  readOnly: true,
  program: { name: 'node', version: process.version },
} as const;
const longWait = { timeoutMs: 120_000 };
const untilGo = 'while [ ! -e go ]; do sleep 0.02; done';

export function processContract(bench: Bench): void {
  foregroundContract(bench);
  detachedContract(bench);
  if (!bench.subject.scriptsChecked) logContract(bench);
  surroundingsContract(bench);
}

function foregroundContract({ signal, make }: Bench): void {
  it('runs a command with its input, output, environment and directory', async () => {
    const sandbox = await make('exec');
    const argv = sh('cat; pwd; echo "$WHAT" >&2; exit 3');
    const result = await sandbox.exec(
      { ...foreground, argv, cwd: '/tmp', env: { WHAT: 'a b\nc' }, stdin: Buffer.from('in\n') },
      signal,
    );
    assert.deepEqual([result.exitCode, String(result.stdout), String(result.stderr)], [3, 'in\n/tmp\n', 'a b\nc\n']);
    assert.deepEqual([result.timedOut, result.truncated, result.signal], [false, false, undefined]);
  });

  it('passes bytes and arguments through unchanged', async () => {
    const sandbox = await make('bytes');
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7) % 256));
    assert.deepEqual((await sandbox.exec({ ...foreground, argv: ['cat'], stdin: bytes }, signal)).stdout, bytes);
    const odd = ['', ' ', '-n', "'", '"', '$HOME', '\\', 'é\n'];
    const printed = await sandbox.exec({ ...foreground, argv: ['printf', '%s|', ...odd] }, signal);
    assert.equal(String(printed.stdout), odd.map((text) => `${text}|`).join(''));
  });

  it('reports how a command ended that failed, was killed or does not exist', async () => {
    const sandbox = await make('ends');
    const end = async (argv: [string, ...string[]]) => sandbox.exec({ ...foreground, argv }, signal);
    assert.equal((await end(['no-such-program'])).exitCode, 127);
    assert.equal(
      (await sandbox.exec({ ...foreground, argv: ['true'], cwd: '/workspace/absent' }, signal)).exitCode,
      126,
    );
    const killed = await end(sh('kill -TERM $$'));
    assert.deepEqual([killed.exitCode, killed.signal], [143, 'SIGTERM']);
  });

  it('ends a command with its children at its timeout, and returns its output so far', async () => {
    const sandbox = await make('slow');
    const argv = sh('echo said; (sleep 61 & sleep 62) & sleep 63');
    const result = await sandbox.exec({ ...foreground, argv, timeoutMs: 10_000 }, signal);
    assert.equal(result.timedOut, true);
    assert.equal(String(result.stdout), 'said\n');
    const left = await sandbox.exec(
      { ...foreground, argv: sh('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "s[l]eep 6[123]"; true') },
      signal,
    );
    assert.equal(String(left.stdout), '0\n');
  });

  it('ends a command whose caller aborts', async () => {
    const sandbox = await make('aborted');
    const stop = new AbortController();
    const running = sandbox.exec({ ...foreground, argv: ['sleep', '600'] }, stop.signal);
    setTimeout(() => stop.abort(new Error('stopped')), 200);
    await assert.rejects(running, /stopped/);
  });

  it('keeps the head of a flood and lets its writer finish', async () => {
    const sandbox = await make('flood');
    const argv = sh('head -c 20000000 /dev/zero; echo done >&2');
    const result = await sandbox.exec({ ...foreground, argv, maxOutputBytes: 1_000 }, signal);
    assert.deepEqual([result.exitCode, result.stdout.length, result.truncated], [0, 1_000, true]);
    assert.equal(String(result.stderr), 'done\n');
  });

  it('has pseudo-terminals of its own', async () => {
    const sandbox = await make('terminals');
    const argv = sh('script -qec "tty; test -t 0 -a -t 1 && ls /dev/pts" /dev/null');
    const { exitCode, stdout } = await sandbox.exec({ ...foreground, account: 'agent', argv }, signal);
    assert.equal(exitCode, 0, String(stdout));
    assert.deepEqual(String(stdout).split(/\s+/).slice(0, 3), ['/dev/pts/0', '0', 'ptmx']);
  });

  it('shows no environment in an argument list', async () => {
    const sandbox = await make('secret');
    const argv = sh('cat /proc/[0-9]*/cmdline | tr "\\0" " "');
    const result = await sandbox.exec({ ...foreground, argv, env: { TOKEN: 'hush-hush' } }, signal);
    assert.doesNotMatch(String(result.stdout), /hush-hush/);
  });
}

function detachedContract({ subject, stack, signal, make }: Bench): void {
  it('starts a process once per key, and reports its end and its log', async () => {
    const sandbox = await make('detached');
    assert.deepEqual(await sandbox.status('job'), { state: 'absent' });
    const argv = sh(`echo ran >>ran; echo out; echo err >/dev/stderr; ${untilGo}; exit 7`);
    const starts = await Promise.all([1, 2, 3].map(() => sandbox.start({ ...agent, key: 'job', argv }, signal)));
    assert.deepEqual(starts.toSorted(), ['already-started', 'already-started', 'started']);
    assert.deepEqual(await sandbox.status('job'), { state: 'running' });
    const waiting = sandbox.wait('job', longWait, signal);
    await sandbox.exec({ ...foreground, argv: ['touch', 'go'] }, signal);
    assert.deepEqual(await waiting, { state: 'exited', exitCode: 7 });
    assert.deepEqual(await sandbox.status('job'), { state: 'exited', exitCode: 7 });
    assert.equal(await sandbox.start({ ...agent, key: 'job', argv }, signal), 'already-started');
    assert.equal(String(await sandbox.readFile('/workspace/ran', 100, signal)), 'ran\n');
    const log = await sandbox.readLog('job', { fromByte: 0, maxBytes: 100 });
    assert.deepEqual([String(log.bytes), log.nextByte, log.truncated], ['out\nerr\n', 8, false]);
    assert.equal(String((await sandbox.readLog('job', { fromByte: 4, maxBytes: 3 })).bytes), 'err');
  });

  it('writes files only for the start that wins', async () => {
    const sandbox = await make('put-at-start');
    const files = (text: string) => [
      { tree: new Map([['f', { mode: 0o644, bytes: Buffer.from(text) }]]), at: '/workspace', owner: 'agent' as const },
    ];
    await sandbox.start({ ...agent, key: 'a', argv: ['cat', 'f'], files: files('one') }, signal);
    await sandbox.wait('a', longWait, signal);
    await sandbox.start({ ...agent, key: 'a', argv: ['cat', 'f'], files: files('two') }, signal);
    assert.equal(String((await sandbox.readLog('a', { fromByte: 0, maxBytes: 10 })).bytes), 'one');
    assert.equal(String(await sandbox.readFile('/workspace/f', 10, signal)), 'one');
  });

  it('lets another provider continue with a process whose starter is gone', async () => {
    const sandbox = await make('survivor');
    await sandbox.start({ ...agent, key: 'job', argv: sh(`echo first; ${untilGo}; echo last; exit 5`) }, signal);
    const other = subject.open(stack);
    const attached = await other.attach(sandbox.name);
    assert.ok(attached);
    assert.equal(await attached.start({ ...agent, key: 'job', argv: ['true'] }, signal), 'already-started');
    assert.deepEqual(await attached.status('job'), { state: 'running' });
    await attached.exec({ ...foreground, argv: ['touch', 'go'] }, signal);
    assert.deepEqual(await attached.wait('job', longWait, signal), { state: 'exited', exitCode: 5 });
    assert.equal(String((await attached.readLog('job', { fromByte: 0, maxBytes: 100 })).bytes), 'first\nlast\n');
    await other.close();
  });

  it('keeps a process running to its normal end when its worker is killed', async () => {
    const sandbox = await make('orphan');
    const fixture = fileURLToPath(new URL('./worker.fixture.ts', import.meta.url));
    const args = [fixture, sandbox.kind, subject.root, stack, sandbox.name];
    const worker = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(worker.stdout, 'data');
    worker.kill('SIGKILL');
    await once(worker, 'close');
    assert.deepEqual(await sandbox.status('job'), { state: 'running' });
    assert.equal(await sandbox.start({ ...agent, key: 'job', argv: ['true'] }, signal), 'already-started');
    await sandbox.exec({ ...foreground, argv: ['touch', 'go'] }, signal);
    assert.deepEqual(await sandbox.wait('job', longWait, signal), { state: 'exited', exitCode: 6 });
    assert.equal(String((await sandbox.readLog('job', { fromByte: 0, maxBytes: 100 })).bytes), 'finished\n');
    assert.equal(String(await sandbox.readFile('/workspace/starts', 100, signal)), 'started\n');
  });

  it('stops waiting at a timeout or an abort, and kills nothing', async () => {
    const sandbox = await make('waiting');
    await sandbox.start({ ...agent, key: 'job', argv: ['sleep', '600'] }, signal);
    assert.deepEqual(await sandbox.wait('job', { timeoutMs: 200 }, signal), { state: 'running' });
    await assert.rejects(sandbox.wait('job', longWait, AbortSignal.timeout(200)), { name: 'TimeoutError' });
    assert.deepEqual(await sandbox.status('job'), { state: 'running' });
    await sandbox.kill('job');
    const ended = await sandbox.status('job');
    assert.deepEqual(ended, { state: 'exited', exitCode: 137, signal: 'SIGKILL' });
    await sandbox.kill('job');
    await sandbox.kill('never-started');
  });

  it('reports a claimed process with neither result nor life as unknown, and never runs it again', async () => {
    const sandbox = await make('unknown');
    await sandbox.start({ ...agent, key: 'job', argv: sh('echo ran >>ran; echo ready; sleep 600') }, signal);
    await logged(sandbox, 'job', 'ready\n');
    await subject.killRecorder(sandbox.name, 'job');
    const attached = await subject.open(stack).attach(sandbox.name);
    const status = await attached?.wait('job', longWait, signal);
    assert.equal(status?.state, 'unknown');
    assert.equal(
      await attached?.start({ ...agent, key: 'job', argv: sh('echo again >>ran') }, signal),
      'already-started',
    );
    assert.equal(String(await attached?.readFile('/workspace/ran', 100, signal)), 'ran\n');
  });

  it('runs detached processes of the grader as well', async () => {
    const sandbox = await make('grader-job');
    await sandbox.start(
      { key: 'tests', argv: sh('echo graded; echo 1 >/logs/verifier/reward.txt'), env: {}, account: 'grader' },
      signal,
    );
    assert.deepEqual(await sandbox.wait('tests', longWait, signal), { state: 'exited', exitCode: 0 });
    assert.equal(String(await sandbox.readFile('/logs/verifier/reward.txt', 10, signal)), '1\n');
  });
}

function logContract({ signal, make }: Bench): void {
  it('keeps the head and tail of a log of 100 MB and lets its writer finish', async () => {
    const sandbox = await make('log-flood', { diskMb: 256 });
    const argv = sh('echo the head; head -c 100000000 /dev/zero; echo; echo the tail; exit 4');
    await sandbox.start({ ...agent, key: 'job', argv }, signal);
    assert.deepEqual(await sandbox.wait('job', longWait, signal), { state: 'exited', exitCode: 4 });
    const log = await sandbox.readLog('job', { fromByte: 0, maxBytes: 100 });
    assert.deepEqual([log.bytes.length, log.truncated], [100, true]);
    assert.match(String(log.bytes), /^the head\n/);
    assert.match(await endOf(sandbox, 'job'), /\0\nthe tail\n$/);
  });

  it('keeps the head and tail of a flood that is ended', async () => {
    const sandbox = await make('flood-ended', { diskMb: 256 });
    const argv = sh('echo the head; head -c 50000000 /dev/zero; echo the tail; touch said; exec sleep 600');
    await sandbox.start({ ...agent, key: 'job', argv }, signal);
    const said = { ...foreground, argv: sh('test -e said') };
    await until(async () => (await sandbox.exec(said, signal)).exitCode === 0);
    await sandbox.kill('job');
    assert.equal((await sandbox.status('job')).state, 'exited');
    assert.match(await endOf(sandbox, 'job'), /\0the tail\n/);
  });
}

/** The last bytes of a log. */
async function endOf(sandbox: Sandbox, key: string): Promise<string> {
  let last = Buffer.alloc(0);
  for (let from = 0; ; ) {
    const { bytes, nextByte } = await sandbox.readLog(key, { fromByte: from, maxBytes: 4 * 2 ** 20 });
    if (bytes.length === 0) return last.toString('latin1');
    last = Buffer.concat([last, bytes]).subarray(-100);
    from = nextByte;
  }
}

/** Waits until the log of a process has exactly this text. */
async function logged(sandbox: Sandbox, key: string, text: string): Promise<void> {
  await until(async () => String((await sandbox.readLog(key, { fromByte: 0, maxBytes: 100 })).bytes) === text);
}

function surroundingsContract({ subject, provider, signal, make }: Bench): void {
  if (subject.programsInImage) return;

  it('reaches the gateway through its socket under /gw if it has sockets, but no network', async () => {
    const hasSockets = provider.channels.includes('socket');
    const directory = mkdtempSync(join(tmpdir(), 'gw-'));
    const server = createServer((socket) => socket.end('hello from the gateway'));
    server.listen(join(directory, 'gateway.sock'));
    chmodSync(directory, 0o755);
    chmodSync(join(directory, 'gateway.sock'), 0o666);
    const sandbox = await make('gateway', {
      ...(hasSockets && { gatewayDir: directory }),
      mounts: [runtime],
      memoryMb: 512,
    });
    const run = (code: string) => sandbox.exec({ ...foreground, argv: ['/runtime/node', '-e', code] }, signal);
    try {
      if (hasSockets) {
        const met = await run(`require('net').connect('/gw/gateway.sock').pipe(process.stdout)`);
        assert.equal(String(met.stdout), 'hello from the gateway', String(met.stderr));
      }
      const away = await run(
        `require('net').connect(53, '1.1.1.1').on('error', (e) => process.exit(9)).on('connect', () => process.exit(0))`,
      );
      assert.equal(away.exitCode, 9);
      const loopback = await run(
        `const s = require('net').createServer(); s.listen(8080, '127.0.0.1', () => process.exit(8))`,
      );
      assert.equal(loopback.exitCode, 8, String(loopback.stderr));
      const write = await sandbox.exec({ ...foreground, argv: sh('touch /gw/x || touch /runtime/x') }, signal);
      assert.notEqual(write.exitCode, 0);
    } finally {
      server.close();
      rmSync(directory, { recursive: true });
    }
  });
}
