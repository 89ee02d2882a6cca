import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { EgressLimits } from './limits.ts';
import type { Network } from './network.ts';
import { EgressRefusedError } from './refused.ts';
import type { Target } from './target.ts';

/**
 * Connects to a host. Its name is resolved once, and the addresses that were checked are the ones that are dialled: an answer that
 * changes between the two has no effect. One refused address refuses the host.
 */
export async function dial(
  { network, limits }: { readonly network: Network; readonly limits: EgressLimits },
  { host, port }: Target,
  signal: AbortSignal,
): Promise<Socket> {
  const addresses = await network.resolve(host);
  if (addresses.length === 0) throw new EgressRefusedError('name-not-found', host);
  if (addresses.some((address) => network.refuses(address))) throw new EgressRefusedError('address-refused', host);
  for (const address of addresses.slice(0, limits.addresses)) {
    const socket = await connectTo(address, port, AbortSignal.any([signal, AbortSignal.timeout(limits.connectMs)]));
    if (socket !== null) return socket;
    signal.throwIfAborted();
  }
  throw new EgressRefusedError('unreachable', `${host}:${port}`);
}

/** Returns null if no connection comes about. */
async function connectTo(address: string, port: number, signal: AbortSignal): Promise<Socket | null> {
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  try {
    await once(socket, 'connect', { signal });
    return socket;
  } catch {
    socket.on('error', () => undefined).destroy();
    return null;
  }
}
