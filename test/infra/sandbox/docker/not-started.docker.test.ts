import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import { wasEndedInside } from '../../../../infra/sandbox/failure.ts';
import type { Sandbox, SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { agentSpec } from '../../../helpers/sandbox/agent-spec.ts';
import { type DaemonFault, type DaemonProxy, startDaemonProxy } from '../../../helpers/sandbox/daemon-proxy.ts';
import { foreground, sh } from '../contract.ts';

const stack = `not-started-${process.pid}`;
const made = new Set<string>();
const limit = (): AbortSignal => AbortSignal.timeout(300_000);

/** The reason of a daemon whose machine has no memory for runc, as the first frame of a command's output. */
const reason =
  'OCI runtime exec failed: exec failed: unable to start container process: fork: cannot allocate memory\r\n';
const frame = `\x01\0\0\0\0\0\0${String.fromCharCode(reason.length)}${reason}`;
/** The number of commands that the daemon will not start. */
let failing = 0;
/** The commands that it did not start. */
const failed = new Set<string>();

/** The daemon's count of what a container uses, unless it is its own. */
let statistics: object | null = null;

function faultOf(path: string): DaemonFault {
  if (statistics !== null && path.endsWith('/stats')) return { status: 200, body: JSON.stringify(statistics) };
  const [, id = '', call] = /^\/exec\/(\w+)\/(start|json)$/.exec(path) ?? [];
  if (call === 'start' && failing > 0) {
    failing -= 1;
    failed.add(id);
    return { status: 200, body: frame };
  }
  const ended = { ID: id, Running: false, ExitCode: 126, Pid: 0 };
  return call === 'json' && failed.has(id) ? { status: 200, body: JSON.stringify(ended) } : undefined;
}

let directory: string;
let daemon: DaemonProxy;
let provider: SandboxProvider;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'temper-not-started-'));
  daemon = await startDaemonProxy(directory, ({ path }) => faultOf(path));
  provider = createDockerProvider({ stack, docker: new Docker({ socketPath: daemon.path }) });
});
after(async () => {
  failing = 0;
  for (const name of made) await provider.remove(name);
  await daemon?.close();
  await rm(directory, { recursive: true, force: true });
});

function make(name: string, changes: Parameters<typeof agentSpec>[2] = {}): Promise<Sandbox> {
  made.add(`${stack}-${name}`);
  return provider.ensure(agentSpec(stack, `${stack}-${name}`, changes), limit());
}
const say = (sandbox: Sandbox) => sandbox.exec({ ...foreground, argv: ['echo', 'said'] }, limit());

it('a command that the daemon could not start is tried again', async () => {
  const sandbox = await make('again');
  failing = 3;
  assert.equal(String((await say(sandbox)).stdout), 'said\n');
  assert.equal(failing, 0);
});

it('a command that the daemon never starts has no result, and its file is not missing', async () => {
  const sandbox = await make('never');
  const unavailable = { type: 'SandboxUnavailable', message: /could not start a command.*cannot allocate memory/ };
  failing = Number.POSITIVE_INFINITY;
  try {
    await assert.rejects(say(sandbox), unavailable);
    await assert.rejects(sandbox.readFile('/logs/verifier/reward.txt', 10, limit()), unavailable);
    await assert.rejects(sandbox.readLog('tests', { fromByte: 0, maxBytes: 10 }), unavailable);
    const request = { key: 'agent', argv: ['true'], env: {}, account: 'agent' } as const;
    await assert.rejects(sandbox.start(request, limit()), unavailable);
  } finally {
    failing = 0;
  }
});

it('a sandbox whose processes leave no room for a command was ended by what runs in it, until they are ended', async () => {
  const sandbox = await make('processes');
  await sandbox.start({ key: 'agent', argv: ['sleep', '1000'], env: {}, account: 'agent' }, limit());
  failing = Number.POSITIVE_INFINITY;
  statistics = { pids_stats: { current: 80, limit: 128 } };
  try {
    await assert.rejects(say(sandbox), wasEndedInside);
    await sandbox.kill('agent');
  } finally {
    failing = 0;
    statistics = null;
  }
  assert.deepEqual(await sandbox.status('agent'), { state: 'exited', exitCode: 137, signal: 'SIGKILL' });
});

it('a sandbox whose memory leaves no room for a command was ended by what ran in it', async () => {
  const sandbox = await make('memory', { sharedMemoryMb: 512 });
  const fill = 'for n in $(seq 80); do head -c 4000000 /dev/zero >/dev/shm/$n; done';
  await sandbox.start({ key: 'agent', argv: sh(fill), env: {}, account: 'agent' }, limit());
  // Its recorder may be ended, too.
  await sandbox.wait('agent', { timeoutMs: 60_000 }, limit()).catch((error) => assert.ok(wasEndedInside(error), error));
  await assert.rejects(sandbox.readFile('/logs/verifier/reward.txt', 10, limit()), wasEndedInside);
});
