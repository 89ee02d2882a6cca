import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRuntime, runScript } from '../../../infra/agents/runtime.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { Command, Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../helpers/gateway/gateway.ts';

/** A target for Node's net.connect. */
type Target = { readonly host: string; readonly port: number } | { readonly path: string };

/** Runs inside the sandbox: prints for each target whether a connection opened, or why not. */
const connector = `
const { connect } = require('node:net');
const attempt = (target) => new Promise((resolve) => {
  const socket = connect({ ...target, timeout: 30000 });
  const say = (what) => { resolve(what); socket.destroy(); };
  socket.once('connect', () => say('open'));
  socket.once('timeout', () => say('timeout'));
  socket.once('error', (error) => say(error.code));
});
Promise.all(JSON.parse(process.env.TARGETS).map(attempt)).then((all) => console.log(JSON.stringify(all)));
`;
/** Runs inside the sandbox: listens where a neighbour might look for it. */
const listener = `
const { createServer } = require('node:net');
const { abstract, port } = JSON.parse(process.env.LISTEN);
createServer().listen(port, '0.0.0.0', () => createServer().listen({ path: abstract }, () => console.log('listening')));
`;
/** Runs inside the sandbox: prints the status of a request to the gateway for each secret. */
const asker = `
const { request } = require('node:http');
const ask = (secret) => new Promise((resolve, reject) => {
  const headers = { authorization: 'Bearer ' + secret };
  request({ socketPath: '/gw/gateway.sock', path: process.env.ASK, headers }, (reply) => resolve(reply.resume().statusCode)).once('error', reject).end();
});
Promise.all(JSON.parse(process.env.SECRETS).map(ask)).then((all) => console.log(JSON.stringify(all)));
`;

describe("an agent's sandbox", () => {
  const stack = `sealed-${process.pid}`;
  const { signal } = new AbortController();
  const provider = createDockerProvider({ stack });
  const neighbourListens = { port: 9_999, abstract: '\0temper-neighbour' };
  let home: string;
  let gateway: TestGateway;
  let own: Sandbox;
  let neighbour: Sandbox;
  let secrets: { readonly own: string; readonly neighbour: string };

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-sealed-'));
    gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [] }) }));
    secrets = { own: await gateway.open('own.1'), neighbour: await gateway.open('neighbour.1') };
    own = await make('own');
    neighbour = await make('neighbour');
    await neighbour.start(
      { key: 'agent', ...script(listener, { LISTEN: neighbourListens, S: secrets.neighbour }) },
      signal,
    );
    while (!String((await neighbour.readLog('agent', { fromByte: 0, maxBytes: 100 })).bytes).includes('listening')) {
      assert.equal((await neighbour.status('agent')).state, 'running');
    }
  });
  after(async () => {
    for (const name of ['own', 'neighbour']) await provider.remove(`${stack}-${name}`);
    await provider.close();
    await gateway?.[Symbol.asyncDispose]();
    await rm(home, { recursive: true, force: true });
  });

  it('reaches the gateway, but not the internet, the host, a neighbour or the control side', async () => {
    const host = createServer().listen(0, '0.0.0.0');
    await once(host, 'listening');
    const { port } = host.address() as AddressInfo;
    try {
      const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
      const ofHost = addresses
        .filter(({ family }) => family === 'IPv4')
        .map(({ address }) => ({ host: address, port }));
      assert.ok(ofHost.length > 1, 'expected the host to have an address beside its loopback');
      for (const { host: address } of ofHost) await opens(address, port);
      const { port: neighbourPort, abstract } = neighbourListens;
      const ofNeighbour: Target[] = [{ host: '127.0.0.1', port: neighbourPort }, { path: abstract }];
      assert.deepEqual(await reach(neighbour, ofNeighbour), ['open', 'open']);

      const shut: Target[] = [
        ...ofHost,
        ...ofNeighbour,
        { host: '1.1.1.1', port: 443 },
        { host: '2606:4700:4700::1111', port: 443 },
        { host: 'example.com', port: 443 },
        { path: join(gateway.options.sockets.control, 'gateway.sock') },
        { path: '/var/run/docker.sock' },
      ];
      const [opened, ...others] = await reach(own, [{ path: '/gw/gateway.sock' }, ...shut]);
      assert.equal(opened, 'open');
      const wrong = others.flatMap((said, at) => (/^E[A-Z_]+$/.test(said) ? [] : [[shut[at], said]]));
      assert.deepEqual(wrong, []);
    } finally {
      host.close();
    }
  });

  it("sees only the gateway's socket, which it can't replace, and no secret of a neighbour", async () => {
    const seen = await lookAround(own);
    assert.equal(seen.split('\n')[0], 'gateway.sock');
    assert.ok(!seen.includes(secrets.neighbour));
    assert.ok(
      (await lookAround(neighbour)).includes(secrets.neighbour),
      'expected the neighbour to see its own secret',
    );
    assert.deepEqual(await reach(own, [{ path: '/gw/gateway.sock' }]), ['open']);
  });

  it('opens its own session with its secret, and no other with a forged one', async () => {
    const forged = secrets.own.replace('own.1', 'neighbour.1');
    assert.notEqual(forged, secrets.own);
    const tried = [secrets.own, forged, 'neighbour.1', `neighbour.1~`, ''];
    assert.deepEqual(await ask('/v1/models', tried), [200, 401, 401, 401, 401]);
  });

  it("can't reach the control side through the agents' socket", async () => {
    for (const path of ['/open', '/seal/neighbour.1', '/close/neighbour.1', '/status/neighbour.1', '/min-versions']) {
      assert.deepEqual(await ask(path, [secrets.own]), [404], path);
    }
    assert.equal((await gateway.send({ path: '/v1/models', headers: bearer(secrets.neighbour) })).status, 200);
  });

  const limits = { timeoutMs: 60_000, maxOutputBytes: 2 ** 20 } as const;
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

  function inside(argv: readonly string[], env: Readonly<Record<string, unknown>> = {}): Command {
    const [program = '', ...args] = argv;
    const texts = Object.entries(env).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]);
    return { argv: [program, ...args], env: Object.fromEntries(texts), account: 'agent' };
  }

  function script(text: string, env: Readonly<Record<string, unknown>>): Command {
    return inside(runScript('-e', [text]), env);
  }

  async function output(sandbox: Sandbox, command: Command): Promise<string> {
    const { exitCode, stdout, stderr } = await sandbox.exec({ ...command, ...limits }, signal);
    assert.equal(exitCode, 0, String(stderr));
    return String(stdout);
  }

  const reach = async (sandbox: Sandbox, targets: readonly Target[]): Promise<string[]> =>
    JSON.parse(await output(sandbox, script(connector, { TARGETS: targets })));

  const ask = async (path: string, tried: readonly string[]): Promise<number[]> =>
    JSON.parse(await output(own, script(asker, { ASK: path, SECRETS: tried })));

  async function lookAround(sandbox: Sandbox): Promise<string> {
    const look =
      'ls -A /gw; touch /gw/x; rm /gw/gateway.sock; mv /gw/gateway.sock /gw/y; env; cat /proc/[0-9]*/environ; ps axe';
    return String((await sandbox.exec({ ...inside(['sh', '-c', look]), ...limits }, signal)).stdout);
  }

  async function opens(address: string, port: number): Promise<void> {
    const socket = connect({ host: address, port });
    await once(socket, 'connect');
    socket.destroy();
  }

  async function make(name: string): Promise<Sandbox> {
    const expiresAtMs = Date.now() + 600_000;
    const runtime = await createRuntime({ cacheDir: join(home, 'cache') }).prepare();
    return provider.ensure(
      {
        name: `${stack}-${name}`,
        image: 'temper-tasks:bookworm',
        labels: { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs },
        cpus: 1,
        memoryMb: 512,
        diskMb: 64,
        pids: 64,
        workdir: '/workspace',
        gatewayDir: gateway.options.sockets.agents,
        mounts: [{ ...runtime, readOnly: true }],
      },
      signal,
    );
  }
});
