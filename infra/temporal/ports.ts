import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const loopback = '127.0.0.1';
/** A range below the kernel's ephemeral ports, which start at 32,768 on Linux. */
const range = { from: 15_000, to: 32_000 } as const;
const attempts = 100;
/** The ports that this process was given. One that is not in use yet is given to no one else here. */
const given = new Set<number>();

/**
 * Returns a free TCP port of an address of this machine outside the ephemeral range, so that no outgoing connection takes it.
 * Another process that chooses a port may still take it before it is used.
 */
export async function freePort(host = loopback): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = randomInt(range.from, range.to);
    if (given.has(port) || !(await isPortFree(port, host)) || given.has(port)) continue;
    given.add(port);
    return port;
  }
  throw new Error(
    `found no free port from ${range.from} to ${range.to} on ${host} in ${attempts} attempts; stop processes that listen there`,
  );
}

/** Whether a TCP port is free on an address of this machine: by default on the loopback address. */
export async function isPortFree(port: number, host = loopback): Promise<boolean> {
  return await bind(port, host).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') return false;
      throw error;
    },
  );
}

async function bind(port: number, host: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, exclusive: true }, resolve);
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
