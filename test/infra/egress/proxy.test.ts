import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { type EgressLimits, egressLimits } from '../../../infra/egress/limits.ts';
import type { EgressRow } from '../../../infra/egress/rows.ts';
import type { NetworkPolicy } from '../../../workflows/contracts/network.ts';
import { createCertificate } from '../../helpers/certificate.ts';
import {
  listenInNetwork,
  loopbackNetwork,
  ownAddress,
  type ServedProxy,
  serveProxy,
} from '../../helpers/egress/loopback-network.ts';
import { until } from '../../helpers/until.ts';

/** The requests that reached the plain server, as it has read them. */
const received: string[] = [];
const payload = randomBytes(300_000);
let plain: Server;
let secure: Server;
let ports: { readonly plain: number; readonly secure: number };
let certificate: string;

const network = loopbackNetwork({
  'index.pypi.test': [ownAddress],
  'files.pypi.test': [ownAddress],
  'other.test': [ownAddress],
  'rebound.pypi.test': [ownAddress, '127.0.0.1'],
  'metadata.pypi.test': ['169.254.169.254'],
  'mapped.pypi.test': ['::ffff:127.0.77.1'],
  'inner.pypi.test': ['10.0.0.1'],
});

function policy(changes: Partial<NetworkPolicy> = {}): NetworkPolicy {
  return { mode: 'allowlist', hosts: ['*.pypi.test'], ports: [ports.plain, ports.secure], ...changes };
}

const start = (
  changes: Partial<NetworkPolicy> = {},
  limits: Partial<EgressLimits> = {},
  recorded: readonly EgressRow[] = [],
): Promise<ServedProxy> =>
  serveProxy({ policy: policy(changes), network, limits: { ...egressLimits, ...limits }, recorded });

before(async () => {
  const pair = await createCertificate('index.pypi.test', 'files.pypi.test', 'other.test');
  certificate = pair.cert;
  const answer = async (request: IncomingMessage): Promise<Buffer> => {
    received.push(`${request.method} ${request.url} host=${request.headers.host} body=${await text(request)}`);
    return request.url === '/payload' ? payload : Buffer.from('welcome');
  };
  plain = createServer(async (request, response) => response.end(await answer(request)));
  secure = createSecureServer(pair, async (request, response) => response.end(await answer(request)));
  ports = { plain: await listenInNetwork(plain), secure: await listenInNetwork(secure) };
});
after(() => {
  plain.close();
  secure.close();
});

/** Sends bytes to a proxy and returns all that comes back. */
async function exchange(port: number, ...pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  for (const piece of pieces) socket.write(piece);
  const reply = await text(socket);
  socket.destroy();
  return reply;
}

async function openTunnel(port: number, authority: string): Promise<{ socket: Socket; status: number }> {
  const request = send({ port, host: '127.0.0.1', method: 'CONNECT', path: authority, agent: false });
  request.end();
  const [response, socket]: [IncomingMessage, Socket] = await once(request, 'connect').then(([a, b]) => [a, b]);
  return { socket, status: response.statusCode ?? 0 };
}

/** Asks for a path over TLS through a tunnel, and returns the body of the reply. */
async function fetchSecurely(port: number, host: string, options: { servername?: string; path?: string } = {}) {
  const { servername = host, path = '/' } = options;
  const { socket } = await openTunnel(port, `${host}:${ports.secure}`);
  const secured: TLSSocket = connectTls({ socket, servername, ca: certificate });
  await once(secured, 'secureConnect');
  secured.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const reply = await buffer(secured);
  return reply.subarray(reply.indexOf('\r\n\r\n') + 4);
}

const rowsOf = ({ proxy }: ServedProxy) =>
  proxy.rows().map(({ host, port, decision, requests }) => `${decision} ${host}:${port} ${requests}`);

describe('the egress proxy', () => {
  it('carries TLS to a listed host, and records host, port and bytes', async () => {
    await using served = await start();
    assert.deepEqual(await fetchSecurely(served.port, 'index.pypi.test', { path: '/payload' }), payload);
    await until(() => (served.proxy.rows()[0]?.bytesIn ?? 0) > payload.length);
    const [row, ...others] = served.proxy.rows();
    assert.deepEqual(others, []);
    const { bytesIn = 0, bytesOut = 0, ...rest } = row ?? {};
    const expected = { host: 'index.pypi.test', port: ports.secure, phase: 'agent', decision: 'allowed', requests: 1 };
    assert.deepEqual(rest, expected);
    assert.ok(bytesIn < payload.length + 10_000, `${bytesIn} bytes in`);
    assert.ok(bytesOut > 200 && bytesOut < 10_000, `${bytesOut} bytes out`);
  });

  it('carries plain HTTP with a body, and says the host that was asked for', async () => {
    await using served = await start();
    received.length = 0;
    const head = `POST http://Files.PyPI.test:${ports.plain}/upload?x=1 HTTP/1.1\r\nHost: files.pypi.test:${ports.plain}\r\n`;
    const reply = await exchange(served.port, `${head}Connection: close\r\nContent-Length: 5\r\n\r\n`, 'hello');
    assert.match(reply, /^HTTP\/1\.1 200 OK\r\n[\s\S]*welcome/);
    assert.deepEqual(received, [`POST /upload?x=1 host=files.pypi.test:${ports.plain} body=hello`]);
    assert.deepEqual(rowsOf(served), [`allowed files.pypi.test:${ports.plain} 1`]);
  });

  it('keeps one request one, whatever its headers say about its end', async () => {
    await using served = await start();
    received.length = 0;
    const at = `http://index.pypi.test:${ports.plain}`;
    const host = `Host: index.pypi.test:${ports.plain}`;
    const hidden = `GET /hidden HTTP/1.1\r\nHost: other.test\r\n\r\n`;
    const chunked = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
    const close = 'Connection: close';
    const refused = [
      `POST ${at}/ HTTP/1.1\r\n${host}\r\nContent-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      `POST ${at}/ HTTP/1.1\r\n${host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `POST ${at}/ HTTP/1.1\r\n${host}\r\nTransfer-Encoding: chunked, identity\r\n\r\n${chunked}`,
      `GET ${at}/ HTTP/1.1\r\nHost: other.test:${ports.plain}\r\n${close}\r\n\r\n`,
      `GET ${at}/ HTTP/1.1\r\n${host}\r\nHost: other.test\r\n${close}\r\n\r\n`,
      `GET http://user@index.pypi.test:${ports.plain}/ HTTP/1.1\r\n${host}\r\n${close}\r\n\r\n`,
      `GET http://other.test\\@index.pypi.test:${ports.plain}/ HTTP/1.1\r\n${host}\r\n${close}\r\n\r\n`,
      `GET / HTTP/1.1\r\n${host}\r\n${close}\r\n\r\n`,
      `GET https://index.pypi.test:${ports.secure}/ HTTP/1.1\r\n${host}\r\n${close}\r\n\r\n`,
      `GET http://127.0.77.1:${ports.plain}/ HTTP/1.1\r\nHost: 127.0.77.1:${ports.plain}\r\n${close}\r\n\r\n`,
    ];
    for (const request of refused) assert.match(await exchange(served.port, request), /^HTTP\/1\.1 400 /, request);
    assert.deepEqual(received, []);
    // A body of GET, and one whose length the Connection header tells a proxy to drop, stay bodies.
    const bodies = [
      `GET ${at}/a HTTP/1.1\r\n${host}\r\n${close}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `GET ${at}/b HTTP/1.1\r\n${host}\r\nConnection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    ];
    for (const request of bodies) assert.match(await exchange(served.port, request), /^HTTP\/1\.1 200 /);
    assert.deepEqual(
      received,
      ['/a', '/b'].map((path) => `GET ${path} host=index.pypi.test:${ports.plain} body=${hidden}`),
    );
    assert.ok(rowsOf(served).some((row) => row.startsWith('bad-request')));
  });

  it('refuses hosts, ports and addresses that a sandbox may not reach, before it connects', async () => {
    await using served = await start();
    const statuses: Record<string, number> = {};
    const asked = [
      `other.test:${ports.secure}`,
      `pypi.test:${ports.secure}`,
      `evilpypi.test:${ports.secure}`,
      'index.pypi.test:22',
      `rebound.pypi.test:${ports.secure}`,
      `metadata.pypi.test:${ports.secure}`,
      `mapped.pypi.test:${ports.secure}`,
      `inner.pypi.test:${ports.secure}`,
      `unknown.pypi.test:${ports.secure}`,
      `127.0.77.1:${ports.secure}`,
      `[::1]:${ports.secure}`,
      `index.pypi.test.:${ports.secure}`,
    ];
    for (const authority of asked) {
      const { socket, status } = await openTunnel(served.port, authority);
      statuses[authority.replace(/:\d+$/, '')] = status;
      socket.destroy();
    }
    assert.deepEqual(statuses, {
      'other.test': 403,
      'pypi.test': 403,
      'evilpypi.test': 403,
      'index.pypi.test': 403,
      'rebound.pypi.test': 403,
      'metadata.pypi.test': 403,
      'mapped.pypi.test': 403,
      'inner.pypi.test': 403,
      'unknown.pypi.test': 502,
      '127.0.77.1': 400,
      '[::1]': 400,
      'index.pypi.test.': 400,
    });
    const decisions = served.proxy.rows().map(({ decision }) => decision);
    assert.deepEqual([...new Set(decisions)].sort(), [
      'address-refused',
      'bad-request',
      'host-refused',
      'name-not-found',
      'port-refused',
    ]);
  });

  it('reaches hosts of no list only where the policy is public, and private addresses nowhere', async () => {
    await using open = await start({ mode: 'public', hosts: [] });
    await using closed = await start({ mode: 'none', hosts: [] });
    assert.equal((await fetchSecurely(open.port, 'other.test')).toString(), 'welcome');
    for (const host of ['metadata.pypi.test', 'rebound.pypi.test', 'inner.pypi.test']) {
      const { socket, status } = await openTunnel(open.port, `${host}:${ports.secure}`);
      socket.destroy();
      assert.equal(status, 403, host);
    }
    const { socket, status } = await openTunnel(closed.port, `other.test:${ports.secure}`);
    socket.destroy();
    assert.equal(status, 403);
  });

  it('ends a tunnel that is not TLS for its host, before the server sees a byte', async () => {
    await using served = await start({}, { helloMs: 300 });
    received.length = 0;
    await assert.rejects(fetchSecurely(served.port, 'index.pypi.test', { servername: 'files.pypi.test' }));
    const connectLine = `CONNECT index.pypi.test:${ports.plain} HTTP/1.1\r\nHost: index.pypi.test\r\n\r\n`;
    const request = 'GET /hidden HTTP/1.1\r\nHost: index.pypi.test\r\n\r\n';
    assert.doesNotMatch(await exchange(served.port, connectLine, request), /welcome/);
    // A client that says nothing waits for a server that speaks first, such as one for SSH.
    await exchange(served.port, connectLine);
    assert.deepEqual(received, []);
    await until(() => served.proxy.rows().reduce((sum, { requests }) => sum + requests, 0) === 3);
    assert.deepEqual(
      rowsOf(served).sort(),
      [`server-name index.pypi.test:${ports.plain} 2`, `server-name index.pypi.test:${ports.secure} 1`].sort(),
    );
  });

  it('gives a sandbox so many bytes, requests and connections, and so long for each', async () => {
    await using few = await start({}, { bytesIn: 100_000 });
    const cut = await fetchSecurely(few.port, 'index.pypi.test', { path: '/payload' }).catch(() => Buffer.alloc(0));
    assert.ok(cut.length < payload.length);
    await until(() => few.proxy.rows().some(({ decision }) => decision === 'limit'));
    const { status } = await openTunnel(few.port, `index.pypi.test:${ports.secure}`);
    assert.equal(status, 429);

    await using narrow = await start({}, { connections: 1, lifetimeMs: 3_000 });
    const first = connect({ port: narrow.port, host: '127.0.0.1' }).resume();
    const closed = once(first, 'close');
    await once(first, 'connect');
    first.write(`CONNECT index.pypi.test:${ports.secure} HTTP/1.1\r\nHost: index.pypi.test\r\n\r\n`);
    await once(first, 'data');
    const second = connect({ port: narrow.port, host: '127.0.0.1' });
    assert.equal(await text(second), '');
    await closed;
    await using rare = await start({}, { requests: 1 });
    assert.equal((await fetchSecurely(rare.port, 'index.pypi.test')).toString(), 'welcome');
    assert.equal((await openTunnel(rare.port, `index.pypi.test:${ports.secure}`)).status, 429);
  });

  it('continues the record of an earlier process, which counts against the limits', async () => {
    await using first = await start({}, { requests: 2 });
    assert.equal((await fetchSecurely(first.port, 'index.pypi.test')).toString(), 'welcome');
    await until(() => first.proxy.rows().some(({ bytesIn }) => bytesIn > 0));
    const recorded = first.proxy.rows();
    await using second = await start({}, { requests: 2 }, recorded);
    assert.deepEqual(second.proxy.rows(), recorded);
    assert.equal((await fetchSecurely(second.port, 'index.pypi.test')).toString(), 'welcome');
    assert.equal((await openTunnel(second.port, `index.pypi.test:${ports.secure}`)).status, 429);
    const [allowed] = second.proxy.rows();
    assert.equal(allowed?.requests, 2);
    assert.ok((allowed?.bytesIn ?? 0) > (recorded[0]?.bytesIn ?? 0));
  });

  it('does not count what it refused for a limit against the next process', async () => {
    await using first = await start({}, { requests: 1 });
    const connectLine = `CONNECT index.pypi.test:${ports.secure} HTTP/1.1\r\nHost: index.pypi.test\r\n\r\n`;
    assert.equal((await fetchSecurely(first.port, 'index.pypi.test')).toString(), 'welcome');
    for (let index = 0; index < 3; index += 1)
      assert.match(await exchange(first.port, connectLine), /^HTTP\/1\.1 429 /);
    await using second = await start({}, { requests: 2 }, first.proxy.rows());
    assert.equal((await fetchSecurely(second.port, 'index.pypi.test')).toString(), 'welcome');
    assert.match(await exchange(second.port, connectLine), /^HTTP\/1\.1 429 /);
  });

  it('counts what is no request as one, also after a restart', async () => {
    await using first = await start({}, { requests: 2 });
    const connectLine = `CONNECT index.pypi.test:${ports.secure} HTTP/1.1\r\nHost: index.pypi.test\r\n\r\n`;
    for (let index = 0; index < 2; index += 1) {
      assert.match(await exchange(first.port, 'no request\r\n\r\n'), /^HTTP\/1\.1 400 /);
    }
    await using second = await start({}, { requests: 2 }, first.proxy.rows());
    for (const { port } of [first, second]) assert.match(await exchange(port, connectLine), /^HTTP\/1\.1 429 /);
  });

  it('keeps its record small, however many hosts are asked for', async () => {
    await using served = await start({}, { rows: 3 });
    const head = (host: string) => `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    for (let index = 0; index < 6; index++) await exchange(served.port, head(`secret${index}.test`));
    assert.deepEqual(rowsOf(served), [
      ...[0, 1, 2].map((index) => `host-refused secret${index}.test:443 1`),
      'host-refused :0 3',
    ]);
  });
});
