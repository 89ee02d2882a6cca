import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';

/**
 * Resolves once a server listens. A later failure to accept a connection, for want of file handles, is passed to `onError`: it
 * ends neither the server nor, as an error without a listener does, the process.
 */
export async function listenOn(
  server: Server,
  options: ListenOptions,
  onError: (error: unknown) => void,
): Promise<void> {
  await once(server.listen(options), 'listening');
  server.on('error', onError);
}
