import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { it } from 'node:test';
import { startSetting } from './setting.ts';

it('refuses a WebSocket at a target that is no address, and still serves', async (t) => {
  const { server } = await startSetting(t, { keys: { client: 'the-token', model: null }, calls: false });
  const { hostname, port } = new URL(server.url);
  const head =
    'host: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==';
  for (const target of ['//', 'http://[', '*']) {
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(`GET ${target} HTTP/1.1\r\n${head}\r\n\r\n`);
    assert.match(await text(socket), /^HTTP\/1\.1 404 /, target);
  }
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
});
