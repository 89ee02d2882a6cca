import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ServerType } from '@hono/node-server';
import { WebSocketServer } from 'ws';
import { type AccessKeys, refusalOf } from './access.ts';
import type { Connections } from './connections.ts';

/** Bytes of one message of a client: a command, or a file that it writes. */
export const messageBytes = 4 * 1024 * 1024;
/** The interval of the pings by which a client that has vanished is noticed. */
const pingMs = 30_000;
const socketPath = '/ws';

/** Serves the clients' WebSockets on a server. Returns the function that ends them. */
export function serveClientSockets(server: ServerType, connections: Connections, keys: AccessKeys): () => void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: messageBytes, perMessageDeflate: false });
  const alive = new WeakSet<object>();
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A stranger may send any text as the target, also one that is no address.
    const [path = ''] = (request.url ?? '').split('?');
    if (path !== socketPath) return refuse(socket, 404, `expected ${socketPath}, got ${path.slice(0, 100)}`);
    const { authorization, host, origin } = request.headers;
    const refusal = refusalOf(keys, { path, authorization, host, origin });
    if (refusal !== null) return refuse(socket, refusal.status, refusal.message);
    sockets.handleUpgrade(request, socket, head, (client) => {
      const connection = connections.open(client);
      alive.add(client);
      client.on('pong', () => alive.add(client));
      client.on('message', (data, isBinary) => connection.receive(isBinary ? '' : String(data)));
      // The event `close` follows.
      client.on('error', () => undefined);
      client.on('close', () => connection.closed());
    });
  });
  const pings = setInterval(() => {
    for (const client of sockets.clients) {
      if (alive.delete(client)) client.ping();
      else client.terminate();
    }
  }, pingMs);
  return () => {
    clearInterval(pings);
    for (const client of sockets.clients) client.terminate();
  };
}

function refuse(socket: Duplex, status: 401 | 403 | 404, message: string): void {
  const body = JSON.stringify({ error: { message } });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: application/json`;
  socket.on('error', () => undefined);
  socket.end(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
