import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGateways } from './gateways.ts';
import { egressSocket, gatewayNameHeader, retryHeader } from './protocol.ts';
import type { Call, Reply, Route, Sending } from './route.ts';

// An import would also evaluate http's WebSocket getters, which load undici: half the start-up time of a short agent.
const { request: connect } = process.getBuiltinModule('node:http');
const { connect: connectSocket } = process.getBuiltinModule('node:net');

export interface SocketRouteOptions {
  /** The directory of the gateways' sockets. */
  readonly directory: string;
  readonly retryMs: number;
}

/**
 * Creates the route over mounted unix sockets: to the gateway that serves the session, once a reply has named it, or to any
 * other when that one is unreachable.
 */
export function createSocketRoute({ directory, retryMs }: SocketRouteOptions): Route {
  const gateways = createGateways(directory);

  function send({ method, path, headers, body }: Call): Sending {
    const upstream = connect({ socketPath: gateways.next(), method, path, headers });
    const reply = new Promise<Reply>((resolve, reject) => {
      upstream.once('error', reject);
      upstream.once('response', (response) => {
        const name = response.headers[gatewayNameHeader];
        if (typeof name === 'string' && response.headers[retryHeader] === undefined) gateways.served(name);
        resolve({
          status: response.statusCode ?? 502,
          headers: response.headers,
          body: response,
          isComplete: () => response.complete,
        });
      });
    });
    upstream.end(body);
    return { reply, abandon: () => void upstream.destroy() };
  }

  const openEgress = (): Promise<Duplex> =>
    new Promise((resolve, reject) => {
      const socket = connectSocket({ path: egressSocket, allowHalfOpen: true });
      socket.once('error', reject).once('connect', () => resolve(socket));
    });

  return { retryMs, send, openEgress, failed: gateways.failed, pause: (ms) => sleep(ms) };
}
