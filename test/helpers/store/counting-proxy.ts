import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request to an S3 server, from its arrival until the end of its answer. */
export interface StoreRequest {
  /** `GET`, `HEAD`, `PUT`, `DELETE`, `POST` (a part of an upload) or `LIST`. */
  readonly kind: string;
  readonly status: number;
  readonly seconds: number;
}

/** A proxy before an S3 server that notes every request. */
export interface CountingProxy {
  readonly url: string;
  readonly requests: readonly StoreRequest[];
  close(): Promise<void>;
}

export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target);
  const requests: StoreRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    const startedAt = performance.now();
    const { method, url: path, headers } = incoming;
    // The signature covers the host that the client named, so all headers are passed on as they are.
    const forwarded = request({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      outgoing.once('close', () => {
        const seconds = (performance.now() - startedAt) / 1000;
        requests.push({ kind: kindOf(incoming), status: answer.statusCode ?? 502, seconds });
      });
    });
    forwarded.once('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function kindOf({ method = '', url = '' }: IncomingMessage): string {
  return method === 'GET' && url.includes('list-type=') ? 'LIST' : method;
}
