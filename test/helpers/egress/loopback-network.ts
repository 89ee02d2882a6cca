import { once } from 'node:events';
import { createServer as createTcpServer, type Server } from 'node:net';
import { isRefused } from '../../../infra/egress/addresses.ts';
import type { EgressLimits } from '../../../infra/egress/limits.ts';
import type { Network } from '../../../infra/egress/network.ts';
import { createEgressProxy, type EgressProxy } from '../../../infra/egress/proxy.ts';
import type { EgressRow } from '../../../infra/egress/rows.ts';
import type { NetworkPolicy } from '../../../workflows/contracts/network.ts';

/** The one loopback address that a network of a test may reach: its own servers listen there, and nothing else does. */
export const ownAddress = '127.0.77.1';

/** Returns a network whose names lead where a test says; every other address is refused as in the public network. */
export const loopbackNetwork = (names: Readonly<Record<string, readonly string[]>>): Network => ({
  resolve: async (host) => names[host] ?? [],
  refuses: (address) => address !== ownAddress && isRefused(address),
});

/** Starts a server on the address of the test's own network, and returns its port. */
export async function listenInNetwork(server: Server): Promise<number> {
  server.listen(0, ownAddress);
  await once(server, 'listening');
  return portOf(server);
}

export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error(`expected a port, got ${address}`);
  return address.port;
}

export interface ServedProxy extends AsyncDisposable {
  readonly proxy: EgressProxy;
  /** The port of 127.0.0.1 on which it is served. */
  readonly port: number;
}

/** Serves a proxy on a loopback port, as the relay does in a sandbox. */
export async function serveProxy(options: {
  readonly policy: NetworkPolicy;
  readonly network: Network;
  readonly limits?: EgressLimits;
  readonly recorded?: readonly EgressRow[];
}): Promise<ServedProxy> {
  const proxy = createEgressProxy({ ...options, phase: 'agent' });
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => proxy.serve(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    proxy,
    port: portOf(server),
    async [Symbol.asyncDispose]() {
      proxy.close();
      server.close();
      await once(server, 'close');
    },
  };
}
