import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Transform } from 'node:stream';

/** A request to the Docker daemon: its method, and its path without the version of the API and the query. */
export interface DaemonRequest {
  readonly method: string;
  readonly path: string;
}

export interface DaemonProxy {
  /** The address for `DOCKER_HOST`. */
  readonly address: string;
  close(): Promise<void>;
}

const head = /^(GET|HEAD|POST|PUT|DELETE) (?:\/v[\d.]+)?(\/[^ ?]*)[^ ]* HTTP\/1\.1\r\n/;

/**
 * Starts a socket before the daemon's, which passes each request on once `before` has resolved. A request begins a chunk,
 * since clients wait for each answer.
 */
export async function startDaemonProxy(
  directory: string,
  before: (request: DaemonRequest) => void | Promise<void>,
  daemon = '/var/run/docker.sock',
): Promise<DaemonProxy> {
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: daemon, allowHalfOpen: true });
    clients.add(client);
    client.pipe(requestsAfter(before)).pipe(engine).pipe(client);
    client.on('error', () => engine.destroy());
    engine.on('error', () => client.destroy());
    client.on('close', () => {
      clients.delete(client);
      engine.destroy();
    });
  });
  const path = join(directory, 'docker.sock');
  server.listen(path);
  await once(server, 'listening');
  return {
    address: `unix://${path}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const client of clients) client.destroy();
      await closed;
    },
  };
}

function requestsAfter(before: (request: DaemonRequest) => void | Promise<void>): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const [, method, path] = head.exec(chunk.subarray(0, 2048).toString('latin1')) ?? [];
      if (method === undefined || path === undefined) return done(null, chunk);
      Promise.resolve(before({ method, path })).then(
        () => done(null, chunk),
        (error: Error) => done(error),
      );
    },
  });
}
