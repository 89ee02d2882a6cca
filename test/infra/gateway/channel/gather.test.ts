import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { completeTrailer, modelService } from '../../../../infra/agents/relay/protocol.ts';
import { createStreamRoute } from '../../../../infra/agents/relay/stream-route.ts';
import { gatherWrites } from '../../../../infra/gateway/channel/gather.ts';
import { type Service, serveChannel } from '../../../../infra/gateway/channel/serve.ts';

const answer: Service = (stream) => {
  stream.respond({ ':status': 200 }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ [completeTrailer]: '1' }));
  stream.end('body');
};

it('a reply over a channel is one piece with its head, body and trailers', async () => {
  const [inside, outside] = duplexPair();
  const ended = serveChannel(outside, new Map([[modelService, answer]]));
  const session = connect('http://gateway', { createConnection: () => inside });
  const ask = async (): Promise<void> => {
    const request = session.request({ ':path': '/', ':authority': modelService });
    const trailers = once(request, 'trailers');
    assert.equal(await text(request), 'body');
    assert.equal((await trailers)[0][completeTrailer], '1');
  };
  // The first one comes with the settings of both ends.
  await ask();
  let pieces = 0;
  inside.on('data', () => {
    pieces += 1;
  });
  await ask();
  assert.equal(pieces, 1);
  session.close();
  inside.destroy();
  await ended;
});

it('a reply that comes at once is read by the relay, however late it looks', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-gather-'));
  const socketPath = join(home, 'channel.sock');
  const route = await createStreamRoute({ socketPath, retryMs: 1_000 });
  const replied = Promise.withResolvers<void>();
  const service: Service = (stream, headers) => {
    stream.once('close', replied.resolve).resume();
    answer(stream, headers);
  };
  const connection = createConnection(socketPath);
  const ended = serveChannel(connection, new Map([[modelService, service]]));
  await route.pause(30_000);
  try {
    const sent = route.send({ method: 'POST', path: '/', headers: {}, body: Buffer.from('asked') });
    const [{ status, body, isComplete }] = await Promise.all([sent.reply, replied.promise]);
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    assert.deepEqual([status, await text(body), isComplete()], [200, 'body', true]);
  } finally {
    route.close();
    await ended;
    await rm(home, { recursive: true });
  }
});

it('gathered writes keep their order, wait for a slow reader, and end the stream after the last', async () => {
  const [inside, outside] = duplexPair();
  const gathered = gatherWrites(outside);
  let written = 0;
  while (gathered.write(Buffer.from(`${written} `.repeat(10_000)))) written += 1;
  assert.ok(written < 20, `${written} pieces were taken at once`);
  gathered.end('last');
  const words = (await text(inside)).split(' ');
  const wanted = Array.from({ length: written + 1 }, (_, piece) => Array.from({ length: 10_000 }, () => String(piece)));
  assert.deepEqual(words, [...wanted.flat(), 'last']);
});
