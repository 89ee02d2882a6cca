import { rm } from 'node:fs/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { listenOn } from '../../listen-on.ts';
import { limits } from '../limits.ts';

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  // The body is a string, so that it is sent in one write with the head.
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers });
  response.end(text);
}

export interface Listener {
  /** Serves a connection that was accepted elsewhere. */
  serve(socket: Socket): void;
  /** Stops accepting connections. */
  stop(): void;
  /** Gives replies in flight a moment, then closes every connection. */
  close(): Promise<void>;
}

export interface Serving {
  readonly handler: RequestListener;
  /** Called when the socket cannot accept a connection. */
  readonly onError: (error: unknown) => void;
}

/** Listens on a unix socket. Replaces a socket that no process listens on any more; throws GatewayUnavailable for a live one. */
export async function listenOnSocket(
  path: string,
  access: 'everyone' | 'owner',
  { handler, onError }: Serving,
): Promise<Listener> {
  await removeStaleSocket(path);
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleConnectionMs,
    },
    handler,
  );
  server.maxConnections = limits.connections;
  const everyone = access === 'everyone';
  await listenOn(server, { path, backlog: limits.backlog, readableAll: everyone, writableAll: everyone }, onError);
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    serve: (socket) => void server.emit('connection', socket),
    stop: () => void server.close(),
    async close() {
      const cut = setTimeout(() => server.closeAllConnections(), limits.flushMs);
      server.close();
      server.closeIdleConnections();
      await closed;
      clearTimeout(cut);
    },
  };
}

async function removeStaleSocket(path: string): Promise<void> {
  const alive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).once('error', () => resolve(false));
    probe.once('close', () => resolve(false)).once('connect', () => probe.destroy());
  });
  if (alive) throw new TemperFailure('GatewayUnavailable', `another gateway listens on ${path}; stop it first`);
  await rm(path, { force: true });
}
