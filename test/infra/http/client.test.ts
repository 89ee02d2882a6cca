import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it, type TestContext } from 'node:test';
import { httpStream } from '../../../infra/http/client.ts';
import { until } from '../../helpers/until.ts';

/** Starts a server that sends one word at once, and counts its connections. */
async function startServer(t: TestContext) {
  const responses: ServerResponse[] = [];
  let connections = 0;
  const server = createServer((_, response) => {
    responses.push(response);
    response.write('word');
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const firstWord = async (): Promise<ServerResponse> => {
    const { chunks } = await httpStream({ method: 'GET', url, timeoutMs: 10_000 });
    for await (const chunk of chunks) {
      assert.equal(String(chunk), 'word');
      break;
    }
    return responses.at(-1) as ServerResponse;
  };
  return { firstWord, connections: () => connections };
}

it('reuses the connection of a response that is left just before its end', async (t) => {
  const { firstWord, connections } = await startServer(t);
  const calls = 20;
  for (let call = 0; call < calls; call += 1) {
    const response = await firstWord();
    response.end('[DONE]');
    await until(() => response.writableFinished);
  }
  // The next call may start before the client has read the end of the previous response.
  assert.ok(connections() <= calls / 2, `${connections()} connections`);
});

it('closes the connection of an endless response that is left', async (t) => {
  const { firstWord } = await startServer(t);
  const response = await firstWord();
  const writing = setInterval(() => response.write('more'), 20);
  await once(response, 'close');
  clearInterval(writing);
  assert.equal(response.writableFinished, false);
});
