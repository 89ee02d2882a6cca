import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A proxy to an HTTP server that can lose answers (the server has done what was asked, and the client never learns it), and
 * hold requests.
 */
export interface LossyProxy {
  readonly url: string;
  /** Loses the next answers to requests of this method and path. */
  loseAnswers(method: string, count: number, path?: RegExp): void;
  /** Holds the next request of this method and path before it reaches the server. */
  hold(method: string, path: RegExp): { readonly arrived: Promise<void>; release(): void };
  /** The number of answers that were lost. */
  lost(): number;
  close(): Promise<void>;
}

/** Starts a proxy. It keeps the client's headers as they are, because they are signed. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const rules: { readonly method: string; readonly path: RegExp; left: number }[] = [];
  const holds: { readonly method: string; readonly path: RegExp; arrive(): void; readonly released: Promise<void> }[] =
    [];
  let lost = 0;
  const server = createServer(async (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const held = holds.find((one) => one.method === method && one.path.test(url.replace(/\?.*/, '')));
    if (held !== undefined) {
      holds.splice(holds.indexOf(held), 1);
      held.arrive();
      await held.released;
    }
    const forwarded = request(new URL(url, target), { method, headers });
    forwarded.end(Buffer.concat(chunks));
    try {
      const [answer] = await once(forwarded, 'response');
      const rule = rules.find((one) => one.left > 0 && one.method === method && one.path.test(url));
      if (rule !== undefined) {
        rule.left -= 1;
        lost += 1;
        answer.resume();
        outgoing.destroy();
        return;
      }
      outgoing.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(outgoing);
    } catch {
      outgoing.destroy();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    loseAnswers: (method, left, path = /./) => void rules.push({ method, left, path }),
    hold(method, path) {
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      holds.push({ method, path, arrive, released });
      return { arrived, release };
    },
    lost: () => lost,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
