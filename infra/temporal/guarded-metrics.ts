import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { httpCall } from '../http/client.ts';
import { listenOn } from '../listen-on.ts';
import { isSameSecret } from '../same-secret.ts';
import type { ServerTls } from '../server-tls.ts';

export interface GuardedMetricsOptions {
  /** The address of the exporter of Temporal's SDK, which has neither TLS nor a token. */
  readonly from: string;
  readonly listen: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly tls: ServerTls;
  readonly token: string;
}

const path = '/metrics';
/** A scraper has one connection, or a few. */
const maxConnections = 64;
const timeoutMs = 10_000;

export interface GuardedMetrics {
  readonly url: string;
  /** Serves another certificate to new connections. Throws if it cannot be served. */
  serveTls(tls: ServerTls): void;
  close(): Promise<void>;
}

/** Serves the metrics of this process by TLS to those with the token, from an exporter on the loopback address. */
export async function serveGuardedMetrics(options: GuardedMetricsOptions): Promise<GuardedMetrics> {
  const { listen, port, tls } = options;
  const server = createServer(tls, (request, response) => void answer(request, response, options));
  server.maxConnections = maxConnections;
  try {
    await listenOn(server, { port, host: listen }, (error) => process.emitWarning(String(error)));
  } catch (cause) {
    const found = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `metrics: expected to listen on ${listen}:${port}, got ${found}; correct TEMPER_METRICS_LISTEN or TEMPER_METRICS_PORT`,
      { cause },
    );
  }
  // The process ends with its workers, also if one of them fails at its start.
  server.unref();
  return {
    url: `https://${listen}:${(server.address() as AddressInfo).port}${path}`,
    serveTls: (renewed) => server.setSecureContext(renewed),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { from, token }: GuardedMetricsOptions,
): Promise<void> {
  const refuse = (status: number, text: string): void =>
    void response.writeHead(status, { 'content-type': 'text/plain' }).end(`${text}\n`);
  const sent = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (sent === undefined || !isSameSecret(sent, token)) {
    return refuse(
      401,
      `expected TEMPER_METRICS_TOKEN as a bearer token, got ${sent === undefined ? 'none' : 'another'}`,
    );
  }
  if (request.method !== 'GET' || request.url !== path) return refuse(404, `expected GET ${path}`);
  try {
    const { status, contentType, bytes } = await httpCall({ method: 'GET', url: `${from}${path}`, timeoutMs });
    response.writeHead(status, { 'content-type': contentType }).end(bytes);
  } catch (error) {
    refuse(502, error instanceof Error ? error.message : String(error));
  }
}
