import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { joinStreams } from './join-streams.ts';
import type { Route } from './route.ts';

const { createServer } = process.getBuiltinModule('node:net');

/** The time in which the host has to take a connection: the agent may be faster than its channel. */
const takeMs = 10_000;
const pauseMs = 50;

/**
 * Listens on a loopback address whose connections the host's proxy serves. The proxy decides where they lead; nothing here, which
 * the agent can replace, has a part in that.
 */
export async function serveEgress(address: string, route: Route): Promise<void> {
  const [host, port] = address.split(':');
  const server = createServer(
    { allowHalfOpen: true, noDelay: true, pauseOnConnect: true },
    (client) => void carry(client, route),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(port), host, resolve);
  });
}

async function carry(client: Socket, route: Route): Promise<void> {
  client.on('error', () => undefined);
  const out = await openSoon(route);
  if (out === null || client.destroyed) {
    client.destroy();
    out?.destroy();
  } else {
    joinStreams(client, out);
    client.resume();
  }
}

async function openSoon(route: Route): Promise<Duplex | null> {
  const giveUpAt = performance.now() + takeMs;
  while (performance.now() < giveUpAt) {
    const out = await route.openEgress().catch(() => null);
    if (out !== null) return out;
    await route.pause(pauseMs);
  }
  return null;
}
