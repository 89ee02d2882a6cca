import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { modelService, retryHeader } from '../../../../infra/agents/relay/protocol.ts';
import { channelLimits } from '../../../../infra/gateway/channel/limits.ts';
import { createModelService, type ModelService } from '../../../../infra/gateway/channel/model-service.ts';
import { serveChannel } from '../../../../infra/gateway/channel/serve.ts';
import { directoryToMount } from '../../../../infra/gateway/sockets.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

/** The prefix of an HTTP/2 connection, and the frames that attacks are made of. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};
const settings = frame(4, 0, 0, Buffer.alloc(0));
const ping = frame(6, 0, 0, Buffer.alloc(8));
const windowUpdate = frame(8, 0, 0, Buffer.from([0, 0, 0, 1]));
/** GET / of an authority that is nothing, as literal header fields of HPACK. */
const headersOf = (stream: number): Buffer => frame(1, 5, stream, Buffer.from([0x82, 0x84, 0x86, 0x01, 0x01, 0x78]));
const reset = (stream: number): Buffer => frame(3, 0, stream, Buffer.from([0, 0, 0, 8]));
const rapidResets = Buffer.concat(
  Array.from({ length: 5_000 }, (_, index) => [headersOf(2 * index + 1), reset(2 * index + 1)]).flat(),
);
const pieceBytes = 64 * 1024;
const many = (one: Buffer): Buffer => Buffer.concat(Array.from({ length: 400_000 }, () => one));

describe('what a hostile sandbox sends over its channel', () => {
  let gateway: TestGateway;
  let models: ModelService;
  let secrets: { readonly own: string; readonly other: string };
  before(async () => {
    gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 258] }) }));
    secrets = { own: await gateway.open('own.1'), other: await gateway.open('other.1') };
    models = createModelService({
      session: 'own.1',
      directory: await directoryToMount(gateway.options.sockets, 'own.1'),
    });
  });
  after(async () => {
    models.close();
    await gateway[Symbol.asyncDispose]();
  });

  /** Opens a channel; returns the sandbox's end, and the reason for which the host's end ended. */
  function open(): { readonly inside: Duplex; readonly ended: Promise<Error | null> } {
    const [inside, outside] = duplexPair();
    inside.on('error', () => undefined);
    return { inside, ended: serveChannel(outside, new Map([[modelService, models.serve]])) };
  }

  async function withClient<Result>(use: (client: ClientHttp2Session) => Promise<Result>): Promise<Result> {
    const { inside, ended } = open();
    const client = connect('http://gateway', { createConnection: () => inside });
    try {
      return await use(client);
    } finally {
      client.destroy();
      await ended;
    }
  }

  async function ask(
    client: ClientHttp2Session,
    headers: object,
  ): Promise<{ head: IncomingHttpHeaders; body: string }> {
    const stream = client.request({ ':path': '/v1/models', ':authority': modelService, ...headers });
    // A reply may have ended before its head is looked at, and then can't be read any more.
    const [[head], body] = await Promise.all([once(stream, 'response'), text(stream)]);
    return { head, body };
  }
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const isUsable = () =>
    withClient(async (client) => {
      const { head } = await ask(client, bearer(secrets.own));
      assert.equal(head[':status'], 200);
    });

  const attacks: Readonly<Record<string, Buffer>> = {
    'bytes that are no HTTP/2': Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
    'random bytes after a good start': Buffer.concat([preface, settings, Buffer.alloc(5_000, 0xa7)]),
    'a frame larger than allowed': Buffer.concat([preface, settings, frame(0, 0, 1, Buffer.alloc(100_000))]),
    'a body for no request': Buffer.concat([preface, settings, frame(0, 0, 5, Buffer.alloc(10))]),
    'headers that do not decode': Buffer.concat([preface, settings, frame(1, 4, 1, Buffer.alloc(50, 0xff))]),
    'a flood of pings': Buffer.concat([preface, settings, many(ping)]),
    'a flood of settings': Buffer.concat([preface, many(settings)]),
    'a flood of frames that need no answer': Buffer.concat([preface, settings, many(windowUpdate)]),
    'requests that it takes back at once': Buffer.concat([preface, settings, rapidResets]),
  };
  for (const [title, bytes] of Object.entries(attacks)) {
    it(`ends the channel and nothing else: ${title}`, async () => {
      const { inside, ended } = open();
      inside.resume();
      // As a pipe does.
      for (let at = 0; at < bytes.length; at += pieceBytes) inside.write(bytes.subarray(at, at + pieceBytes));
      await ended;
      assert.ok(inside.destroyed || inside.readableEnded || (await once(inside, 'close')));
      await isUsable();
    });
  }

  it('is answered by its own session alone', () =>
    withClient(async (client) => {
      assert.equal((await ask(client, bearer(secrets.own))).head[':status'], 200);
      assert.equal((await ask(client, bearer(secrets.other))).head[':status'], 401);
      assert.equal((await ask(client, {})).head[':status'], 401);
      assert.equal((await ask(client, { ...bearer(secrets.own), ':path': '/open' })).head[':status'], 404);
    }));

  it('is refused where it is not a model call', () =>
    withClient(async (client) => {
      const refused = async (headers: object) =>
        (await ask(client, { ...bearer(secrets.own), ...headers })).head[':status'];
      assert.equal(await refused({ ':authority': 'example.com:443' }), 421);
      assert.equal(await refused({ ':method': 'DELETE' }), 405);
    }));

  it('is asked to come again while no gateway of its session answers', async () => {
    const nowhere = createModelService({ session: 'own.1', directory: '/nonexistent' });
    const [inside, outside] = duplexPair();
    const ended = serveChannel(outside, new Map([[modelService, nowhere.serve]]));
    const client = connect('http://gateway', { createConnection: () => inside });
    const { head } = await ask(client, bearer(secrets.own));
    assert.deepEqual([head[':status'], head[retryHeader]], [503, '1']);
    client.destroy();
    await ended;
    nowhere.close();
  });

  it('takes no more requests at once than a session may have', () =>
    withClient(async (client) => {
      await once(client, 'remoteSettings');
      assert.equal(client.remoteSettings.maxConcurrentStreams, channelLimits.requests);
      await assert.rejects(ask(client, { 'x-big': 'x'.repeat(60_000) }), { code: 'ERR_HTTP2_STREAM_ERROR' });
    }));

  it('ends only its channel when it ends its output before a reply, and is slow to end its input', async () => {
    const [inside, far] = duplexPair();
    const inputEnded = Promise.withResolvers<void>();
    const outside = new Duplex({
      read: () => undefined,
      write: (chunk, _encoding, done) => void far.write(chunk, done),
      final: (done) => void inputEnded.promise.then(() => done()),
    });
    far.on('data', (chunk) => outside.push(chunk)).once('end', () => outside.push(null));
    const asked = Promise.withResolvers<ServerHttp2Stream>();
    const ended = serveChannel(outside, new Map([[modelService, asked.resolve]]));
    const client = connect('http://gateway', { createConnection: () => inside }).on('error', () => undefined);
    client.request({ ':path': '/v1/models', ':authority': modelService }).on('error', () => undefined);
    const reply = await asked.promise;
    const end = once(outside, 'end');
    inside.end();
    await end;
    // The end of the channel's own side has begun by now, and is not over.
    await nextTurn();
    if (!reply.destroyed) reply.respond({ ':status': 200 }, { endStream: true });
    await nextTurn();
    inputEnded.resolve();
    await ended;
    client.destroy();
  });
});
