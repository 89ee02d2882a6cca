import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/** A free TCP port of the loopback address, as the kernel gives it; somebody else may take it before it is used. */
export async function freePort(): Promise<number> {
  return await bind(0);
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

async function bind(port: number): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}
