import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { readGreeting } from '../../../infra/egress/client-hello.ts';
import { portOf } from '../../helpers/egress/loopback-network.ts';

/** Returns the first bytes that Node's own TLS client sends. */
async function greetingOf(servername: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: portOf(server), host: '127.0.0.1', servername });
  client.on('error', () => undefined);
  const [socket] = await once(server, 'connection');
  const [bytes]: Buffer[] = await once(socket, 'data');
  client.destroy();
  server.close();
  if (bytes === undefined) throw new Error('the client sent nothing');
  return bytes;
}

const record = (content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([22, 3, 1, content.length >> 8, content.length & 255]), content]);

/** Returns a greeting with these extensions, by type. */
function greetingWith(extensions: readonly (readonly [number, Buffer])[], leftOver = Buffer.alloc(0)): Buffer {
  const sized = (bytes: number, content: Buffer): Buffer => {
    const size = Buffer.alloc(bytes);
    size.writeUIntBE(content.length, 0, bytes);
    return Buffer.concat([size, content]);
  };
  const list = extensions.map(([type, content]) =>
    Buffer.concat([Buffer.from([type >> 8, type & 255]), sized(2, content)]),
  );
  const body = [
    Buffer.alloc(34, 3),
    sized(1, Buffer.alloc(0)),
    sized(2, Buffer.from([19, 1])),
    sized(1, Buffer.alloc(1)),
  ];
  const content = Buffer.concat([...body, sized(2, Buffer.concat(list)), leftOver]);
  return record(Buffer.concat([Buffer.from([1]), sized(3, content)]));
}

function serverName(...names: readonly string[]): readonly [number, Buffer] {
  const entries = names.map((name) => Buffer.concat([Buffer.from([0, 0, name.length]), Buffer.from(name)]));
  const list = Buffer.concat(entries);
  return [0, Buffer.concat([Buffer.from([list.length >> 8, list.length & 255]), list])];
}

describe('the greeting of a TLS client', () => {
  let greeting: Buffer;
  before(async () => {
    greeting = await greetingOf('pypi.test');
  });

  it('names the server', () => {
    assert.deepEqual(readGreeting(greeting), { kind: 'tls', serverName: 'pypi.test', isEncrypted: false });
  });

  it('is incomplete at each of its bytes but the last', () => {
    const kinds = new Set(Array.from(greeting, (_, length) => readGreeting(greeting.subarray(0, length)).kind));
    assert.deepEqual([...kinds], ['incomplete']);
  });

  it('is read from several records', () => {
    const handshake = greeting.subarray(5);
    const pieces = [handshake.subarray(0, 1), handshake.subarray(1, 70), handshake.subarray(70)].map(record);
    assert.equal(readGreeting(Buffer.concat(pieces.slice(0, 2))).kind, 'incomplete');
    assert.deepEqual(readGreeting(Buffer.concat(pieces)), readGreeting(greeting));
  });

  it('may name no server, or hide its name', () => {
    assert.deepEqual(readGreeting(greetingWith([])), { kind: 'tls', serverName: null, isEncrypted: false });
    const hidden = readGreeting(greetingWith([serverName('a.test'), [0xfe0d, Buffer.alloc(4)]]));
    assert.deepEqual(hidden, { kind: 'tls', serverName: 'a.test', isEncrypted: true });
  });

  it('does not count if a server could read another name from it', () => {
    const cases = {
      'two names': greetingWith([serverName('a.test', 'b.test')]),
      'two extensions': greetingWith([serverName('a.test'), serverName('b.test')]),
      'bytes left over': greetingWith([serverName('a.test')], Buffer.from([0])),
      'another kind of name': greetingWith([[0, Buffer.from([0, 4, 1, 0, 1, 97])]]),
      'an empty record': Buffer.concat([record(Buffer.alloc(0)), greeting]),
      HTTP: Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      SSH: Buffer.from('SSH-2.0-x\r\n'),
      'another message': record(Buffer.from([2, 0, 0, 0])),
    };
    for (const [name, bytes] of Object.entries(cases)) assert.equal(readGreeting(bytes).kind, 'other', name);
  });
});
