import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, pipeline } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { KubeConfig } from '@kubernetes/client-node';

/** A request to the API server: its method, its path without the query, and whether it is a watch. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly watches: boolean;
}

/**
 * The fate of a request. `lose`: the API server does it, and its answer gets lost in a 504. An answer is given instead of the API
 * server's, which never sees the request. Undefined passes the request on.
 */
export type ApiFault =
  | 'lose'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: string }
  | undefined;

export interface ApiProxy {
  /** The path of a kubeconfig that leads to the proxy. */
  readonly kubeconfig: string;
  /** The requests so far, those for streams among them. */
  readonly requests: readonly ApiRequest[];
  /** Breaks the connection of every stream. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a proxy before the API server of a kubeconfig, with the rights of that. It asks for the fate of each request. */
export async function startApiProxy(
  config: KubeConfig,
  fateOf: (request: ApiRequest) => ApiFault | Promise<ApiFault> = () => undefined,
): Promise<ApiProxy> {
  const target = await targetOf(config);
  const requests: ApiRequest[] = [];
  const streams = new Set<Duplex>();
  const note = ({ method = '', url = '' }: IncomingMessage): ApiRequest => {
    const { pathname: path, searchParams } = new URL(url, 'http://api');
    const request = { method, path, watches: searchParams.has('watch') };
    requests.push(request);
    return request;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const fate = await fateOf(note(request));
    if (fate === undefined || fate === 'lose') {
      const answered = await forward(target, request, response);
      if (fate === undefined) {
        response.writeHead(answered.statusCode ?? 502, { 'content-type': 'application/json' });
        // A watch answers for as long as it lasts.
        pipeline(answered, response, () => undefined);
        return;
      }
      await buffer(answered);
    }
    const { status, headers = {}, body } = fate === 'lose' ? timedOut : fate;
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
  const server = createServer((request, response) => {
    // A client that has gone, or an API server that does not answer, ends one request.
    answer(request, response).catch(() => response.destroy());
  });
  server.on('upgrade', (request: IncomingMessage, client: Duplex) => {
    note(request);
    connectStreams(target, request, client, streams);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const home = await mkdtemp(join(tmpdir(), 'temper-api-proxy-'));
  const kubeconfig = join(home, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigFor(server.address() as AddressInfo));
  const cut = (): void => {
    for (const stream of streams) stream.destroy();
  };
  return {
    kubeconfig,
    requests,
    cut,
    close: async () => {
      cut();
      server.closeAllConnections();
      server.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

const timedOut = {
  status: 504,
  headers: {},
  body: JSON.stringify({ kind: 'Status', status: 'Failure', code: 504, message: 'the request timed out' }),
};

async function targetOf(config: KubeConfig): Promise<RequestOptions> {
  const { hostname, port } = new URL(config.getCurrentCluster()?.server ?? '');
  const options: RequestOptions = { hostname, port };
  await config.applyToHTTPSOptions(options);
  return options;
}

async function forward(target: RequestOptions, request: IncomingMessage, response: ServerResponse) {
  const { method, url: path, headers } = request;
  const passed = httpsRequest({ ...target, method, path, headers });
  response.on('close', () => passed.destroy());
  request.pipe(passed);
  const [answer] = (await once(passed, 'response')) as [IncomingMessage];
  return answer;
}

/** Passes the bytes of a WebSocket on, both ways. */
function connectStreams(target: RequestOptions, request: IncomingMessage, client: Duplex, streams: Set<Duplex>): void {
  const { method, url: path, headers } = request;
  const passed = httpsRequest({ ...target, method, path, headers });
  passed.on('upgrade', (answer: IncomingMessage, server: Duplex, first: Buffer) => {
    client.write(headOf(answer));
    client.write(first);
    client.pipe(server).pipe(client);
    for (const [end, other] of [
      [client, server],
      [server, client],
    ] as const) {
      streams.add(end);
      end.on('error', () => other.destroy());
      end.on('close', () => {
        streams.delete(end);
        other.destroy();
      });
    }
  });
  passed.on('response', (answer) => {
    client.end(headOf(answer));
    answer.resume();
  });
  passed.on('error', () => client.destroy());
  passed.end();
}

function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

const kubeconfigFor = ({ port }: AddressInfo): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'proxy', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'proxy', user: {} }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
    'current-context': 'proxy',
  });
