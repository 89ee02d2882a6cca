import assert from 'node:assert/strict';
import { access, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { createSessionSockets } from '../../../../infra/gateway/http/session-sockets.ts';
import { limits } from '../../../../infra/gateway/limits.ts';
import { directoryNameOf, directoryToMount, socketOf } from '../../../../infra/gateway/sockets.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { sendTo, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

const scripted = () => createScriptedEngine({ script: () => ({ kind: 'say', ids: [104, 105, 258] }) });

const ownSocket = ({ options }: TestGateway, session: string, name = 'gateway'): string =>
  socketOf(join(options.sockets.sessions, directoryNameOf(session)), name);

const models = (socket: string, secret: string): Promise<number> =>
  sendTo(socket, { path: '/v1/models', headers: { authorization: `Bearer ${secret}` } }).then(({ status }) => status);

const chat = (socket: string, secret: string, text: string): Promise<unknown> =>
  sendTo(socket, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    body: JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: text }] }),
  }).then(({ json }) => json?.choices?.[0]?.message.content);

describe("a session's own socket", () => {
  it('serves that session and no other', async () => {
    await using gateway = await startTestGateway(scripted());
    const own = await gateway.open('a.1');
    const other = await gateway.open('b.1');
    const statuses = [own, other].map((secret) => models(ownSocket(gateway, 'a.1'), secret));
    assert.deepEqual(await Promise.all(statuses), [200, 401]);
  });

  it('is there again after a restart, in the directory that the sandbox has mounted', async () => {
    await using gateway = await startTestGateway(scripted());
    const secret = await gateway.open('a.1');
    const mounted = await directoryToMount(gateway.options.sockets, 'a.1');
    assert.equal(mounted, dirname(ownSocket(gateway, 'a.1')));
    const before = await readdir(gateway.options.sockets.sessions);
    await gateway.restart();
    assert.equal(await models(ownSocket(gateway, 'a.1'), secret), 200);
    assert.deepEqual(await readdir(gateway.options.sockets.sessions), before);
  });

  it('is removed when the session is sealed, however often, and then the shared directory is mounted', async () => {
    await using gateway = await startTestGateway(scripted());
    await gateway.open('a.1');
    await gateway.open('b.1');
    await gateway.control.seal('a.1');
    await gateway.control.seal('a.1');
    const left = directoryNameOf('b.1');
    assert.deepEqual((await readdir(gateway.options.sockets.sessions)).sort(), [left, `${left}.json`]);
    assert.equal(await directoryToMount(gateway.options.sockets, 'a.1'), gateway.options.sockets.agents);
  });

  it('is removed at the next start if its session expired, or was sealed by a gateway that was killed meanwhile', async () => {
    await using gateway = await startTestGateway(scripted());
    const { sessions } = gateway.options.sockets;
    await gateway.stop();
    for (const name of ['expired', 'sealed']) {
      await mkdir(join(sessions, name), { recursive: true });
      await writeFile(join(sessions, name, 'gateway.sock'), '');
    }
    await writeFile(join(sessions, 'expired.json'), JSON.stringify({ session: 'old.1', expiresAt: Date.now() - 1 }));
    await gateway.restart();
    assert.deepEqual(await readdir(sessions), []);
  });

  it('is opened by the other gateways, and closed when one of them has sealed the session', async () => {
    await using gateway = await startTestGateway(scripted());
    await using other = await startTestGateway(scripted(), { ...gateway.options, name: 'gateway-1' });
    const secret = await gateway.open('a.1');
    const statusThere = (): Promise<number> => models(ownSocket(gateway, 'a.1', 'gateway-1'), secret).catch(() => 0);
    await until(async () => (await statusThere()) === 200);
    await other.control.seal('a.1');
    await until(async () => !(await exists(ownSocket(gateway, 'a.1'))));
    assert.deepEqual(await readdir(gateway.options.sockets.sessions), []);
  });
});

describe('the sockets of all sessions', () => {
  it('are removed when they expire, also while the record of another session cannot be read', async () => {
    const root = await mkdtemp(join(tmpdir(), 'temper-session-sockets-'));
    const sockets = createSessionSockets({ root, name: 'gateway', onConnection: () => {}, onError: () => {} });
    try {
      await writeFile(join(root, 'broken.json'), 'no record');
      await sockets.open('over.1', Date.now() - 1);
      await assert.rejects(sockets.synchronise(), /expected sockets of sessions, got 1 failures/);
      assert.deepEqual(await readdir(root), ['broken.json']);
    } finally {
      await sockets.close();
      await rm(root, { recursive: true });
    }
  });
});

describe('an agent that opens idle connections in a loop', () => {
  it('has few of them accepted, and keeps no turn of another session from being answered meanwhile', async () => {
    // Refused connections are opened again at once, so the flood lasts until it is stopped. Each turn waits for some of it.
    const underFlood = createScriptedEngine({
      async script() {
        const before = flood.attempts;
        await until(() => flood.attempts > before);
        return { kind: 'say', ids: [104, 105, 258] };
      },
    });
    const bound = limits.sessionConnections + limits.sessionBacklog + 1;
    const connections = 2 * bound;
    await using gateway = await startTestGateway(underFlood);
    await gateway.open('hostile.1');
    const secret = await gateway.open('b.1');
    const flood = startFlood(ownSocket(gateway, 'hostile.1'), connections);
    try {
      for (let turn = 0; turn < 8; turn += 1) {
        await until(() => flood.held >= limits.sessionConnections);
        assert.equal(await chat(ownSocket(gateway, 'b.1'), secret, `${turn}`), 'hi');
      }
      await until(() => flood.dropped >= limits.sessionConnections || flood.held === connections);
      assert.ok(flood.most <= bound, `expected at most ${bound} connections at once, got ${flood.most}`);
    } finally {
      flood.stop();
    }
  });
});

/**
 * Keeps a number of connections open or being opened. It counts those that it holds, which are accepted or wait to be, the most
 * that it held at once, and those that the gateway dropped.
 */
function startFlood(path: string, connections: number) {
  const sockets = new Set<Socket>();
  const open = new Set<Socket>();
  const flood = {
    attempts: 0,
    most: 0,
    dropped: 0,
    stop,
    get held() {
      return open.size;
    },
  };
  let isOn = true;

  function add(): void {
    flood.attempts += 1;
    const socket = connect(path);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('connect', () => {
      open.add(socket);
      flood.most = Math.max(flood.most, open.size);
    });
    socket.once('close', () => {
      sockets.delete(socket);
      if (open.delete(socket)) flood.dropped += 1;
      if (isOn) void nextTick().then(() => isOn && add());
    });
  }

  function stop(): void {
    isOn = false;
    for (const socket of sockets) socket.destroy();
  }

  for (let index = 0; index < connections; index += 1) add();
  return flood;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
