import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import type { Objects } from '../../../infra/store/objects.ts';
import { openBucket } from '../../../infra/store/s3/open.ts';
import type { S3Place } from '../../../infra/store/s3/place.ts';
import { startCarelessS3 } from '../../helpers/store/careless-s3.ts';
import { startLossyProxy } from '../../helpers/store/lossy-proxy.ts';
import { startS3Server } from '../../helpers/store/s3-server.ts';
import { describeObjects } from './contract.ts';

const server = await startS3Server();
after(() => server.close());

const places = new Map<Objects, S3Place>();
const placeOf = (objects: Objects): S3Place => places.get(objects) ?? assert.fail();
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

describeObjects('a bucket', {
  async open() {
    const place = server.place();
    // Small pages, so that every listing has several.
    const objects = openBucket(place, { pageSize: 7 });
    places.set(objects, place);
    return objects;
  },
  age: (objects, key) => server.age(placeOf(objects), key),
  damage: (objects, key) => server.damage(placeOf(objects), key),
});

describe('a bucket', () => {
  it('keeps objects of a stack apart from others, also without a prefix', async () => {
    const [one, other, whole] = [server.place(), server.place(), server.place({ prefix: '' })].map((place) =>
      openBucket(place),
    );
    await one?.replace('runs/a/b', text('1'), null);
    assert.equal(await other?.get('runs/a/b'), null);
    assert.equal(await whole?.get('runs/a/b'), null);
    await whole?.replace('runs/a/b', text('2'), null);
    assert.deepEqual((await one?.get('runs/a/b'))?.bytes.toString(), '1');
  });

  it('waits for a server that is away, and loses nothing', async () => {
    const objects = openBucket(server.place());
    const version = await objects.replace('a', text('1'), null);
    await server.kill();
    const writes = [
      objects.replace('a', text('2'), version),
      objects.replace('b', text('1'), null),
      objects.putOnce('c', randomBytes(9 * 2 ** 20)),
    ];
    const reading = objects.get('a');
    const late = setTimeout(() => void server.start(), 500);
    try {
      const [replaced, created] = await Promise.all(writes);
      assert.ok(replaced && created);
      assert.ok((await reading) !== null);
      assert.equal((await objects.stat('c'))?.size, 9 * 2 ** 20);
    } finally {
      clearTimeout(late);
    }
  });

  it('fails as StoreUnavailable when the server stays away', async () => {
    const objects = openBucket(server.place({ endpoint: 'http://127.0.0.1:9' }));
    await assert.rejects(objects.get('a'), {
      type: 'StoreUnavailable',
      message: /^cannot read a in s3:\/\/temper-test: .*ECONNREFUSED.*check TEMPER_STORE_ENDPOINT/,
    });
  });

  it('says that a bucket does not exist, and that credentials are wrong', async () => {
    const nowhere = openBucket(server.place({ bucket: 'no-such-bucket' }));
    await assert.rejects(nowhere.get('a'), { type: 'StoreUnavailable', message: /NoSuchBucket.*create the bucket/ });
    const secret = process.env.AWS_SECRET_ACCESS_KEY;
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    try {
      const refused = openBucket(server.place());
      await assert.rejects(refused.get('a'), (error: Error) => {
        assert.match(error.message, /HTTP 403 SignatureDoesNotMatch.*check the credentials/);
        assert.doesNotMatch(JSON.stringify({ ...error }) + error.stack, /wrong/);
        return true;
      });
    } finally {
      process.env.AWS_SECRET_ACCESS_KEY = secret;
    }
  });
});

describe('an answer of a bucket', () => {
  it('is asked for again once it goes silent before its end', { timeout: 60_000 }, async () => {
    const store = await startAnswering([
      (response) => void response.write('12345'),
      (response) => response.end('whole'),
    ]);
    try {
      const objects = openBucket(server.place({ endpoint: store.url }), { silentMs: 200 });
      assert.equal((await objects.get('a'))?.bytes.toString(), 'whole');
    } finally {
      await store.close();
    }
  });

  it('may take longer while it carries something', async () => {
    const letters = [...'abcdef'];
    const store = await startAnswering([
      (response) => {
        const timer = setInterval(() => {
          const letter = letters.shift();
          if (letter !== undefined) return void response.write(letter);
          clearInterval(timer);
          response.end();
        }, 200);
      },
    ]);
    try {
      const objects = openBucket(server.place({ endpoint: store.url }), { silentMs: 1_000 });
      assert.equal((await objects.get('a'))?.bytes.toString(), 'abcdef');
    } finally {
      await store.close();
    }
  });
});

/** Starts a server that sends a head at once, and leaves the body of each answer in turn to a function. */
async function startAnswering(bodies: ((response: ServerResponse) => void)[]) {
  const answering = createServer((_, response) => {
    response.writeHead(200, { etag: '"1"' });
    (bodies.shift() ?? assert.fail('one request too many'))(response);
  });
  answering.listen(0, '127.0.0.1');
  await once(answering, 'listening');
  const { port } = answering.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      answering.closeAllConnections();
      answering.close();
      await once(answering, 'close');
    },
  };
}

describe('removal from a bucket', () => {
  it('leaves an object that was renewed after its removal was decided', async () => {
    const proxy = await startLossyProxy(server.url);
    try {
      const place = server.place();
      const [writer, remover] = [openBucket(place), openBucket({ ...place, endpoint: proxy.url })];
      for (const bytes of [randomBytes(10), randomBytes(9 * 2 ** 20)]) {
        for (let times = 0; times < 3; times += 1) {
          await writer.putOnce('store/a', bytes);
          await server.age(place, 'store/a');
          const held = proxy.hold('DELETE', /store\/a$/);
          const removing = remover.remove('store/a', Date.now() - 60_000);
          await held.arrived;
          await writer.putOnce('store/a', bytes);
          held.release();
          assert.equal(await removing, false);
          assert.equal(Buffer.compare((await writer.get('store/a'))?.bytes ?? Buffer.alloc(0), bytes), 0);
        }
        assert.equal(await writer.remove('store/a'), true);
      }
    } finally {
      await proxy.close();
    }
  });

  it('leaves an object that was written again after a removal whose answer was lost', async () => {
    const proxy = await startLossyProxy(server.url);
    try {
      const place = server.place();
      const [writer, remover] = [openBucket(place), openBucket({ ...place, endpoint: proxy.url })];
      const bytes = randomBytes(10);
      await writer.putOnce('store/a', bytes);
      await server.age(place, 'store/a');
      proxy.loseAnswers('DELETE', 1, /store\/a/);
      const [first, second] = [proxy.hold('HEAD', /store\/a$/), proxy.hold('HEAD', /store\/a$/)];
      const removing = remover.remove('store/a', Date.now() - 60_000);
      first.release();
      await second.arrived;
      assert.deepEqual([proxy.lost(), await writer.get('store/a')], [1, null]);
      // The same bytes have the same version.
      await writer.putOnce('store/a', bytes);
      second.release();
      assert.equal(await removing, false);
      assert.notEqual(await writer.get('store/a'), null);
    } finally {
      await proxy.close();
    }
  });

  it('aborts uploads that were begun and never ended', async () => {
    const place = server.place();
    const objects = openBucket(place);
    await server.beginUpload(place, 'store/ab/large');
    await objects.replace('runs/a', text('1'), null);
    const found = [];
    for await (const leftover of objects.leftovers(['store', 'runs'])) found.push(leftover);
    assert.deepEqual(
      found.map(({ kind, name }) => [kind, name.endsWith('store/ab/large')]),
      [['write', true]],
    );
    assert.ok(Math.abs(Date.now() - (found[0]?.changedAtMs ?? 0)) < 60_000);
    assert.equal(await found[0]?.settle(0), true);
    for await (const { name } of objects.leftovers(['store'])) assert.fail(name);
  });

  it('is refused where the server ignores its condition', async () => {
    const careless = await startCarelessS3(['if-match']);
    try {
      const objects = openBucket(server.place({ endpoint: careless.url }));
      await objects.replace('store/a', text('1'), null);
      await assert.rejects(objects.remove('store/a', Date.now()), {
        type: 'StoreUnavailable',
        message: /ignores the condition If-Match of a removal/,
      });
      assert.notEqual(await objects.get('store/a'), null);
    } finally {
      await careless.close();
    }
  });
});

describe('a write whose answer is lost', () => {
  it('counts once: the same writer learns that it succeeded', async () => {
    const proxy = await startLossyProxy(server.url);
    try {
      const objects = openBucket(server.place({ endpoint: proxy.url }));
      proxy.loseAnswers('PUT', 1);
      const first = await objects.replace('a', text('1'), null);
      assert.ok(first !== null);
      proxy.loseAnswers('PUT', 1);
      const second = await objects.replace('a', text('2'), first);
      assert.ok(second !== null);
      assert.equal(proxy.lost(), 2);
      assert.deepEqual(await objects.get('a'), { bytes: Buffer.from('2'), version: second });
    } finally {
      await proxy.close();
    }
  });

  it('is no success if another writer was first', async () => {
    const proxy = await startLossyProxy(server.url);
    try {
      const place = server.place({ endpoint: proxy.url });
      const objects = openBucket(place);
      const first = await objects.replace('a', text('1'), null);
      await openBucket({ ...place, endpoint: server.url }).replace('a', text('theirs'), first);
      proxy.loseAnswers('PUT', 1);
      assert.equal(await objects.replace('a', text('2'), first), null);
      assert.equal((await objects.get('a'))?.bytes.toString(), 'theirs');
    } finally {
      await proxy.close();
    }
  });

  it('completes the upload of a large object once', async () => {
    const proxy = await startLossyProxy(server.url);
    try {
      const objects = openBucket(server.place({ endpoint: proxy.url }));
      const bytes = randomBytes(9 * 2 ** 20);
      proxy.loseAnswers('POST', 2, /uploadId=/);
      proxy.loseAnswers('PUT', 1);
      await objects.putOnce('large', bytes);
      assert.equal(Buffer.compare((await objects.get('large'))?.bytes ?? Buffer.alloc(0), bytes), 0);
    } finally {
      await proxy.close();
    }
  });
});
