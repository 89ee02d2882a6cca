import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';
/** Below the ports that the kernel gives to connections and to whoever asks for any (from 32,768 on Linux). */
const RANGE = { from: 15_000, to: 32_000 } as const;
const ATTEMPTS = 100;

/** A free TCP port of the loopback address, of those that no connection gets by chance; another chooser still may before it is used. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = randomInt(RANGE.from, RANGE.to);
    if (await isPortFree(port)) return port;
  }
  throw new Error(
    `expected a free port from ${RANGE.from} to ${RANGE.to} on ${LOOPBACK}, got none of ${ATTEMPTS} tried`,
  );
}

export async function isPortFree(port: number): Promise<boolean> {
  return await bind(port).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') return false;
      throw error;
    },
  );
}

async function bind(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, resolve);
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
