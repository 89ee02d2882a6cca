import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { Network } from '../../infra/egress/network.ts';
import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import { createCertificate } from '../helpers/certificate.ts';
import {
  listenInNetwork,
  loopbackNetwork,
  ownAddress,
  portOf,
  serveProxy,
} from '../helpers/egress/loopback-network.ts';
import { until } from '../helpers/until.ts';

/** The requests that the servers of the network have got, with their bodies. */
const asked: string[] = [];
const answer = async (request: IncomingMessage): Promise<string> => {
  asked.push(`${request.method} ${request.headers.host?.split(':')[0]}${request.url} ${await text(request)}`.trim());
  return `content of ${request.url}`;
};
/** A server of an allowed host. */
const open = createServer(async (request, response) => {
  const content = await answer(request);
  if (request.url !== '/moved') return void response.end(content);
  response.writeHead(302, { location: `http://inner.open.test:${portOf(closed)}/secret` }).end();
});
const secure = createSecureServer(async (request, response) => response.end(await answer(request)));
/** A service of the host itself, which no sandbox may reach. */
const closed = createServer(async (request, response) => response.end(await answer(request)));
/** A server of an allowed host that leaves HTTP. */
const leaving = createTcpServer((socket) => {
  socket.on('error', () => undefined);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n');
  socket.on('data', (bytes) => asked.push(`raw ${bytes.toString('latin1')}`));
});

let certificate: string;
before(async () => {
  const pair = await createCertificate('open.test', 'other.test');
  certificate = pair.cert;
  secure.setSecureContext(pair);
  await listenInNetwork(open);
  await listenInNetwork(secure);
  await listenInNetwork(leaving);
  closed.listen(0, '127.0.0.1');
  await once(closed, 'listening');
});
after(() => {
  for (const server of [open, secure, closed, leaving]) server.close();
});

const ports = (): number[] => [open, secure, closed, leaving].map(portOf);
const listed = (): NetworkPolicy => ({ mode: 'allowlist', hosts: ['open.test', '*.open.test'], ports: ports() });
const names = { 'open.test': [ownAddress], 'other.test': [ownAddress], 'inner.open.test': ['127.0.0.1'] };

async function serve(changes: { readonly network?: Network; readonly policy?: NetworkPolicy } = {}) {
  asked.length = 0;
  return serveProxy({ policy: listed(), network: loopbackNetwork(names), ...changes });
}

/** Sends bytes to a proxy, and returns all that comes back until it ends. */
async function send(port: number, bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  socket.write(bytes);
  const reply = await text(socket);
  socket.destroy();
  return reply;
}

const statusesIn = (reply: string): readonly string[] =>
  [...reply.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, n]) => n ?? '');
const get = (target: string, host: string): string =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

describe('what a sandbox cannot get by its network', () => {
  it('an address that an answer of the DNS gives only the second time', async () => {
    let questions = 0;
    const network: Network = {
      ...loopbackNetwork(names),
      resolve: async () => {
        questions += 1;
        return questions % 2 === 1 ? [ownAddress] : ['127.0.0.1'];
      },
    };
    await using served = await serve({ network });
    const url = `http://open.test:${portOf(open)}/`;
    const replies: (readonly string[])[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      replies.push(statusesIn(await send(served.port, get(url, `open.test:${portOf(open)}`))));
    }
    // The name is resolved once for each request, and what was checked is dialled.
    assert.deepEqual(replies, [['200'], ['403'], ['200'], ['403']]);
    assert.equal(questions, 4);
  });

  it('an address within another one, or of a network that is not public', async () => {
    const within6 =
      '::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 2001:0:7f00:1::';
    const closed6 = '::1 :: fe80::1 fec0::1 fd00::1 ff02::1 100::1';
    const closed4 =
      '127.0.0.1 127.1.2.3 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 168.63.129.16 192.0.0.192';
    const others4 = '198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255';
    const addresses = [within6, closed6, closed4, others4].flatMap((list) => list.split(' '));
    for (const address of addresses) {
      const network = { ...loopbackNetwork({}), resolve: async () => [address] };
      await using served = await serve({ network, policy: { ...listed(), mode: 'public', hosts: [] } });
      const authority = `open.test:${portOf(closed)}`;
      assert.deepEqual(statusesIn(await send(served.port, get(`http://${authority}/`, authority))), ['403'], address);
      assert.deepEqual(
        served.proxy.rows().map(({ decision }) => decision),
        ['address-refused'],
        address,
      );
    }
  });

  it('a private address to which an allowed host redirects', async () => {
    await using served = await serve();
    const authority = `open.test:${portOf(open)}`;
    const moved = await send(served.port, get(`http://${authority}/moved`, authority));
    assert.deepEqual(statusesIn(moved), ['302']);
    const [, location = ''] = /location: (\S+)/i.exec(moved) ?? [];
    assert.deepEqual(statusesIn(await send(served.port, get(location, new URL(location).host))), ['403']);
    assert.deepEqual(asked, ['GET open.test/moved']);
  });

  it('another host by an address that two programs read in two ways', async () => {
    await using served = await serve();
    const port = portOf(open);
    const own = portOf(closed);
    const targets = [
      `http://open.test:${port}@127.0.0.1:${own}/`,
      `http://open.test#@127.0.0.1:${own}/`,
      `http://open.test%00.other.test:${port}/`,
      `http://open.test%2f@other.test:${port}/`,
      `http://open.test:${port}:${own}/`,
      `http://other.test:${port}\\.open.test/`,
      `http://2130706433:${own}/`,
      `http://0x7f000001:${own}/`,
      `http://0177.0.0.1:${own}/`,
      `http://127.1:${own}/`,
      `http://[::ffff:127.0.0.1]:${own}/`,
      `http://[::1%25lo]:${own}/`,
      `http://localhost:${own}/`,
      `http:///127.0.0.1:${own}/`,
      `//127.0.0.1:${own}/`,
      `ftp://open.test:${port}/`,
      `http://ⓞpen.test:${port}/`,
      '*',
    ];
    for (const target of targets) {
      const statuses = statusesIn(await send(served.port, get(target, `open.test:${port}`)));
      assert.deepEqual(statuses, ['400'], target);
    }
    assert.deepEqual(asked, []);
  });

  it('a second request within the first, or for another host on the same connection', async () => {
    await using served = await serve();
    const authority = `open.test:${portOf(open)}`;
    const hidden = get('/hidden', 'other.test');
    const post = (...headers: readonly string[]): string =>
      [`POST http://${authority}/ HTTP/1.1`, `Host: ${authority}`, ...headers, '', ''].join('\r\n');
    const chunked = `0\r\n\r\n${hidden}`;
    const requests = [
      post('Content-Length: 5', 'Transfer-Encoding: chunked') + chunked,
      post('Transfer-Encoding : chunked') + chunked,
      post('Transfer-Encoding: xchunked') + chunked,
      post('Transfer-Encoding:\x0bchunked') + chunked,
      post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunked,
      post('Content-Length: +5') + hidden,
      post('Content-Length: 5,0') + hidden,
      post('Content-Length: 0x5') + hidden,
      post('X: a', ' Content-Length: 5') + hidden,
      post('Content-Length: 0', 'X: a\nHost: other.test') + hidden,
      `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\nX:\rY: z\r\n\r\n`,
    ];
    for (const request of requests) {
      const reply = await send(served.port, request);
      assert.deepEqual(statusesIn(reply), ['400'], JSON.stringify(request));
    }
    assert.deepEqual(asked, []);
    // Of two requests that are sent at once, each is decided on its own.
    const keep = `GET http://${authority}/one HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
    const other = `other.test:${portOf(open)}`;
    assert.deepEqual(statusesIn(await send(served.port, keep + get(`http://${other}/two`, other))), ['200', '403']);
    assert.deepEqual(asked, ['GET open.test/one']);
  });

  it('a connection that leaves HTTP by an upgrade', async () => {
    await using served = await serve();
    const authority = `open.test:${portOf(leaving)}`;
    const head = `GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n`;
    const reply = await send(served.port, `${head}raw bytes`);
    assert.deepEqual(statusesIn(reply), ['502']);
    assert.ok(
      asked.every((bytes) => !bytes.includes('raw bytes') && !/upgrade/i.test(bytes)),
      asked.join(),
    );
  });
});

describe('what a sandbox still gets by its network', () => {
  const secret = 'the-hidden-tests'.repeat(100);

  it('bytes to an allowed host, which the record counts', async () => {
    await using served = await serve();
    const authority = `open.test:${portOf(open)}`;
    const head = `POST http://${authority}/take HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n`;
    const reply = await send(served.port, `${head}Content-Length: ${secret.length}\r\n\r\n${secret}`);
    assert.deepEqual(statusesIn(reply), ['200']);
    assert.deepEqual(asked, [`POST open.test/take ${secret}`]);
    await until(() => (served.proxy.rows()[0]?.bytesOut ?? 0) > secret.length);
  });

  it('words in names below a listed one, which the record holds', async () => {
    const questions: string[] = [];
    const network = {
      ...loopbackNetwork({}),
      resolve: async (host: string) => {
        questions.push(host);
        return [];
      },
    };
    await using served = await serve({ network });
    const host = 'the-hidden-tests.open.test';
    assert.deepEqual(statusesIn(await send(served.port, get(`http://${host}/`, host))), ['403']);
    const authority = `${host}:${portOf(open)}`;
    assert.deepEqual(statusesIn(await send(served.port, get(`http://${authority}/`, authority))), ['502']);
    assert.deepEqual(questions, [host]);
    assert.ok(served.proxy.rows().some((row) => row.host === host && row.decision === 'name-not-found'));
  });

  it('another site of an allowed server, by its name within TLS', async () => {
    await using served = await serve();
    const socket = connect({ port: served.port, host: '127.0.0.1' });
    socket.write(`CONNECT open.test:${portOf(secure)} HTTP/1.1\r\nHost: open.test\r\n\r\n`);
    await once(socket, 'data');
    const tls = connectTls({ socket, servername: 'open.test', ca: certificate });
    tls.write(get('/within', 'other.test'));
    assert.match(await text(tls), /content of \/within/);
    assert.deepEqual(asked, ['GET other.test/within']);
    assert.deepEqual(
      served.proxy.rows().map(({ host, decision }) => `${decision} ${host}`),
      ['allowed open.test'],
    );
  });
});
