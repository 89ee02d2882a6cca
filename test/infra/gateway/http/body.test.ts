import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { createBodyReader, hasAtMost } from '../../../../infra/gateway/http/body.ts';

const megabytes = (count: number): Buffer => Buffer.alloc(count * 1024 * 1024, ' ');
/** Makes a request of chunks, since the reader only needs a stream. */
const asRequest = (stream: PassThrough): IncomingMessage => stream as unknown as IncomingMessage;
const opened = (bytes: Buffer): PassThrough => {
  const stream = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
  stream.write(bytes);
  return stream;
};

describe('the reader of bodies', () => {
  it('gives the bodies of one owner a common budget, and each owner its own', async () => {
    const read = createBodyReader<object>();
    const [one, other] = [{}, {}];
    const streams = [1, 2, 3].map(() => opened(megabytes(15)));
    const [first, second, third] = streams.map((stream) => read(asRequest(stream), one));
    const elsewhere = opened(megabytes(15));
    const fourth = read(asRequest(elsewhere), other);
    for (const stream of [...streams, elsewhere]) stream.end('{}');
    assert.deepEqual(await Promise.all([first, second, fourth]), [{}, {}, {}]);
    await assert.rejects(Promise.resolve(third), { kind: 'too-many-turns', message: /this session sends more than/ });
    const later = opened(megabytes(15));
    later.end('{}');
    assert.deepEqual(await read(asRequest(later), one), {}, 'there is room again');
  });

  it('rejects a body of too many values without visiting all of them', async () => {
    const stream = opened(Buffer.from(`{"messages":[${'1,'.repeat(1_000_000)}1]}`));
    stream.end();
    const read = createBodyReader<object>();
    await assert.rejects(read(asRequest(stream), {}), { kind: 'too-large', message: /at most 100000 JSON values/ });
  });

  it('counts every array, object and scalar', () => {
    const value = { a: [1, 2, { b: null }], c: 'text' };
    assert.equal(hasAtMost(value, 7), true);
    assert.equal(hasAtMost(value, 6), false);
    assert.equal(hasAtMost('text', 1), true);
  });
});
