import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { createBodyReader } from '../../../../infra/gateway/http/body.ts';

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
    const [first, second, third] = streams.map((stream) => read(asRequest(stream), one, 'messages'));
    const elsewhere = opened(megabytes(15));
    const fourth = read(asRequest(elsewhere), other, 'messages');
    for (const stream of [...streams, elsewhere]) stream.end('{}');
    assert.deepEqual(await Promise.all([first, second, fourth]), [{}, {}, {}]);
    await assert.rejects(Promise.resolve(third), { kind: 'too-many-turns', message: /this session sends more than/ });
    const later = opened(megabytes(15));
    later.end('{}');
    assert.deepEqual(await read(asRequest(later), one, 'messages'), {}, 'there is room again');
  });

  it('rejects a body of too many values without visiting all of them', async () => {
    const stream = opened(Buffer.from(`{"messages":[${'1,'.repeat(1_000_000)}1]}`));
    stream.end();
    const read = createBodyReader<object>();
    await assert.rejects(read(asRequest(stream), {}, 'messages'), {
      kind: 'too-large',
      message: /at most 100000 JSON values/,
    });
  });

  it('rejects a body that exceeds the number of values together with what an earlier body had', async () => {
    const read = createBodyReader<object>();
    const owner = {};
    const send = (items: number): Promise<unknown> => {
      const stream = opened(Buffer.from(`{"messages":[${'1,'.repeat(items - 1)}1]}`));
      stream.end();
      return read(asRequest(stream), owner, 'messages');
    };
    await send(99_990);
    await send(99_998);
    await assert.rejects(send(99_999), { kind: 'too-large', message: /at most 100000 JSON values/ });
    await assert.rejects(send(100_100), { kind: 'too-large', message: /at most 100000 JSON values/ });
  });
});
