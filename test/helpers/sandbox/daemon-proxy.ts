import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Transform } from 'node:stream';

/** A request to the Docker daemon: its method, and its path without the version of the API and the query. */
export interface DaemonRequest {
  readonly method: string;
  readonly path: string;
}

/**
 * The fate of a request. `lose`: the daemon does it, and the connection breaks when it answers. An answer is given instead of
 * the daemon's, which never sees the request. Undefined passes the request on.
 */
export type DaemonFault =
  | 'lose'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | undefined;

type Before = (request: DaemonRequest) => DaemonFault | Promise<DaemonFault>;

export interface DaemonProxy {
  /** The address for `DOCKER_HOST`. */
  readonly address: string;
  /** The path of the socket. */
  readonly path: string;
  /** Breaks every open connection. */
  cut(): void;
  close(): Promise<void>;
}

const head = /^(GET|HEAD|POST|PUT|DELETE) (?:\/v[\d.]+)?(\/[^ ?]*)[^ ]* HTTP\/1\.1\r\n/;

/**
 * Starts a socket before the daemon's, which passes each request on once `before` has resolved, unless that returns a fault. A
 * request begins a chunk, since clients wait for each answer.
 */
export async function startDaemonProxy(
  directory: string,
  before: Before,
  daemon = '/var/run/docker.sock',
): Promise<DaemonProxy> {
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: daemon, allowHalfOpen: true });
    clients.add(client);
    const lose = (): void => {
      engine.unpipe(client);
      engine.once('data', () => client.destroy()).resume();
    };
    const answer = (text: string): void => void client.end(text);
    client.pipe(requestsAfter(before, { lose, answer })).pipe(engine).pipe(client);
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
  const cut = (): void => {
    for (const client of clients) client.destroy();
  };
  return {
    address: `unix://${path}`,
    path,
    cut,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}

interface Faults {
  lose(): void;
  answer(text: string): void;
}

function requestsAfter(before: Before, { lose, answer }: Faults): Transform {
  let answered = false;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (answered) return done();
      const [, method, path] = head.exec(chunk.subarray(0, 2048).toString('latin1')) ?? [];
      if (method === undefined || path === undefined) return done(null, chunk);
      Promise.resolve(before({ method, path })).then(
        (fault) => {
          if (fault === 'lose') lose();
          if (fault === undefined || fault === 'lose') return done(null, chunk);
          answered = true;
          answer(answerText(fault));
          done();
        },
        (error: Error) => done(error),
      );
    },
  });
}

function answerText({ status, headers = {}, body = '{}' }: Exclude<DaemonFault, 'lose' | undefined>): string {
  const own = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), Connection: 'close' };
  const lines = Object.entries({ ...own, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Fault\r\n${lines.join('')}\r\n${body}`;
}
