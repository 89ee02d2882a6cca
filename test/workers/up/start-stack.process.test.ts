import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isRunning } from '../../../infra/process/process-identity.mjs';
import { type Config, readConfig } from '../../../infra/settings/config.ts';
import { openSharedState } from '../../../infra/store/shared-state.ts';
import { connectClient } from '../../../infra/temporal/connection.ts';
import { missingSearchAttributes } from '../../../infra/temporal/search-attributes.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { withFreePorts } from '../../../workers/up/ports.ts';
import { startStack } from '../../../workers/up/start-stack.ts';
import { readUpFile, type UpFile } from '../../../workers/up/up-file.ts';
import { until } from '../../helpers/until.ts';

/** The parts to start: only the Temporal server, since these tests are about the supervisor, not about its processes. */
const parts = ['temporal'] as const;

describe('a stack', () => {
  let config: Config;
  before(async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-up-'));
    config = await withFreePorts(readConfig({ ...withoutTemporal(), TEMPER_HOME: home }));
  });
  after(() => rm(config.home, { recursive: true, force: true }));

  it('comes up with the search attributes registered, and leaves no process when it is closed', async () => {
    const stack = await startStack({ config, parts }, noSignal());
    const connection = await connectClient(temporalTarget(config));
    assert.deepEqual(await missingSearchAttributes(connection.connection, 'default'), []);
    await connection.close();
    const server = partOf(await upFileOf(config), 'temporal');
    assert.ok(isRunning(server));
    await stack.close();
    assert.ok(!isRunning(server));
    assert.equal(await readUpFile(config.paths.up), null);
  });

  it('refuses a second stack on the same home and names the process of the first', async () => {
    const stack = await startStack({ config, parts }, noSignal());
    try {
      await assert.rejects(
        startStack({ config, parts }, noSignal()),
        new RegExp(`already runs on ${config.home}, started by process ${process.pid};`),
      );
    } finally {
      await stack.close();
    }
  });

  it('restarts the Temporal server when it is killed', async () => {
    const stack = await startStack({ config, parts }, noSignal());
    try {
      const killed = partOf(await upFileOf(config), 'temporal');
      process.kill(killed.pid, 'SIGKILL');
      const file = await until(async () => {
        const found = await upFileOf(config);
        return found.parts.some((part) => part.process !== null && part.process.pid !== killed.pid) ? found : null;
      });
      assert.equal(file.parts[0]?.restarts, 1);
      // The process is there before it answers.
      await (await until(() => connectClient(temporalTarget(config)).catch(() => null))).close();
    } finally {
      await stack.close();
    }
  });

  it('names a port that is in use, what it is for, and what to do', async () => {
    const other = createServer().listen(config.uiPort, '127.0.0.1');
    await once(other, 'listening');
    try {
      await assert.rejects(
        startStack({ config, parts }, noSignal()),
        new RegExp(`port ${config.uiPort} .*the Temporal UI.*TEMPER_UI_PORT.*--port auto`),
      );
    } finally {
      other.close();
    }
  });

  it('waits for the policy server, and calls it, where it listens', async () => {
    const listening = await withFreePorts(readConfig({ ...config.env, TEMPER_LISTEN: '127.0.0.2' }));
    const stack = await startStack({ config: listening, parts: ['temporal', 'policy'] }, noSignal());
    try {
      const { policy } = stack.addresses;
      assert.equal(policy, `http://127.0.0.2:${listening.policyPort}`);
      assert.deepEqual(listening.pool.urls, [policy]);
      assert.equal((await fetch(`${policy}/health`)).status, 200);
    } finally {
      await stack.close();
    }
  });

  it('refuses to serve the policy to a network without keys, with short ones, or without a certificate', async () => {
    const keys = { TEMPER_ENGINE_API_KEY: '', TEMPER_TRAINER_API_KEY: 'key' };
    const open = await withFreePorts(readConfig({ ...config.env, ...keys, TEMPER_LISTEN: '0.0.0.0' }));
    await assert.rejects(
      startStack({ config: open, parts: ['temporal', 'policy'] }, noSignal()),
      /TEMPER_LISTEN=0\.0\.0\.0 serves the policy to a network, which also needs TEMPER_ENGINE_API_KEY, TEMPER_TRAINER_API_KEY, TEMPER_LISTEN_CERT, TEMPER_LISTEN_KEY;/,
    );
  });

  it('refuses to listen on an address that the machine does not have', async () => {
    const elsewhere = readConfig({ ...config.env, TEMPER_LISTEN: '192.0.2.1' });
    await assert.rejects(
      startStack({ config: elsewhere, parts: ['temporal', 'policy'] }, noSignal()),
      /TEMPER_LISTEN=192\.0\.2\.1 is no address of this machine/,
    );
  });

  it('says that it waits for a host name that another machine has', async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-name-'));
    const mine = await withFreePorts(readConfig({ ...config.env, TEMPER_HOME: home, TEMPER_HOST: 'taken' }));
    const { hosts } = await openSharedState(mine.store);
    const facts = { version: '1', capacity: 1, taken: 0, sandboxes: [], generation: 1, leaseMs: 60_000 };
    const renewedAt = new Date().toISOString();
    await hosts.replace(
      'taken',
      { ...facts, machine: 'other', renewal: 'r', draining: null, renewedAt, lost: null },
      null,
    );
    const stop = new AbortController();
    const progress = (line: string): void => stop.abort(new Error(line));
    try {
      await assert.rejects(
        startStack({ config: mine, parts: ['temporal', 'host'], progress }, stop.signal),
        /the host name taken belongs to another machine, .* for 180 s\. `temper host forget taken` ends the wait/,
      );
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  it('ends all processes when its supervisor is killed, after which the home can be used again', async () => {
    const supervisor = supervise(config);
    await once(supervisor, 'message');
    const server = partOf(await upFileOf(config), 'temporal');
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    await until(() => !isRunning(server));
    const stack = await startStack({ config, parts }, noSignal());
    await stack.close();
  });

  it('leaves no process when its supervisor is killed while the server starts', async () => {
    const supervisor = supervise(config);
    const server = await until(async () => {
      const lines = await readFile(
        join('/proc', String(supervisor.pid), 'task', String(supervisor.pid), 'children'),
        'utf8',
      );
      const pids = lines.split(' ').filter((pid) => pid !== '');
      return pids.length < 2 ? null : Number(pids[0]); // the server and its tether
    });
    supervisor.kill('SIGKILL');
    await until(async () => !(await alive(server)));
  });
});

/** Starts a supervisor in a process of its own, which can be killed. */
function supervise(config: Config): ChildProcess {
  const script = join(import.meta.dirname, '../fixtures/supervisor.ts');
  return spawn(process.execPath, [script], {
    env: config.env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

async function alive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/\) Z /.test(stat);
}

async function upFileOf(config: Config): Promise<UpFile> {
  const file = await readUpFile(config.paths.up);
  assert.ok(file !== null, `expected ${config.paths.up}`);
  return file;
}

function partOf(file: UpFile, name: string) {
  const found = file.parts.find((part) => part.name === name)?.process;
  assert.ok(found !== null && found !== undefined, `expected ${name} to run`);
  return found;
}

const noSignal = (): AbortSignal => new AbortController().signal;

/** Returns the environment without a Temporal server, so that these tests start their own. */
function withoutTemporal() {
  const names = Object.keys(process.env).filter((name) => !name.startsWith('TEMPORAL_'));
  const env = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return { ...env, TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml' };
}
