import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { NetworkPhase, NetworkPolicy } from '../../workflows/contracts/network.ts';
import { type EgressRules, exchange } from './exchange.ts';
import { forward, readHttpRequest } from './forward.ts';
import { createLedger } from './ledger.ts';
import { type EgressLimits, egressLimits } from './limits.ts';
import type { Network } from './network.ts';
import type { EgressRefusedError } from './refused.ts';
import type { EgressRow } from './rows.ts';
import { readAuthority } from './target.ts';
import { acceptTunnel, carryTunnel } from './tunnel.ts';

/** The proxy of one sandbox. */
export interface EgressProxy {
  /** Serves a connection from the sandbox, until either side ends it. */
  serve(connection: Duplex): void;
  /** Returns the record of what the sandbox asked for so far, by host, port and decision. */
  rows(): readonly EgressRow[];
  /** Ends all connections. */
  close(): void;
}

export interface EgressProxyOptions {
  readonly policy: NetworkPolicy;
  readonly phase: NetworkPhase;
  readonly network: Network;
  readonly limits?: EgressLimits;
  /** The record of an earlier process, which counts against the limits. Default: none. */
  readonly recorded?: readonly EgressRow[];
}

export function createEgressProxy({
  policy,
  phase,
  network,
  limits = egressLimits,
  recorded = [],
}: EgressProxyOptions): EgressProxy {
  const ledger = createLedger(phase, limits, recorded);
  const rules: EgressRules = { policy, network, limits, ledger };
  const closing = new AbortController();
  const { signal } = closing;
  const connections = new Set<Duplex>();
  const server = createServer({ maxHeaderSize: limits.headerBytes, insecureHTTPParser: false });
  server.setTimeout(limits.idleMs);
  server.on('request', (request, response) => void answerRequest(rules, { request, response }, signal));
  server.on('connect', ({ url = '' }, client, head) => void answerConnect(rules, { url, client, head }, signal));
  server.on('clientError', (_error, client) => {
    ledger.unreadable();
    endWith(client, replyTo(400, 'expected a valid request'));
  });
  return {
    serve(connection) {
      connection.on('error', () => undefined);
      if (signal.aborted || connections.size >= limits.connections) {
        ledger.decided(null, 'limit');
        connection.destroy();
        return;
      }
      connections.add(connection);
      connection.once('close', () => connections.delete(connection));
      server.emit('connection', connection);
    },
    rows: ledger.rows,
    close() {
      closing.abort();
      for (const connection of connections) connection.destroy();
    },
  };
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function answerRequest(rules: EgressRules, { request, response }: Asked, closing: AbortSignal): Promise<void> {
  for (const stream of [request, response]) stream.on('error', () => undefined);
  const refused = await exchange(
    rules,
    () => readHttpRequest(request),
    ({ target, allow }, signal) => forward({ request, response }, allow(), target, signal),
    closing,
  );
  if (response.headersSent) {
    if (!response.writableFinished) response.destroy();
    return;
  }
  const { status, message } = refused ?? broken;
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' });
  response.end(`temper egress: ${message}\n`);
}

interface AskedTunnel {
  readonly url: string;
  readonly client: Duplex;
  readonly head: Buffer;
}

async function answerConnect(
  rules: EgressRules,
  { url, client, head }: AskedTunnel,
  closing: AbortSignal,
): Promise<void> {
  client.on('error', () => undefined);
  let isAccepted = false;
  const refused: EgressRefusedError | null = await exchange(
    rules,
    () => readAuthority(url, null),
    async ({ target, allow }, signal) => {
      isAccepted = true;
      const greeting = await acceptTunnel(client, { host: target.host, head }, rules, signal);
      await carryTunnel(client, allow(), greeting, signal);
    },
    closing,
  );
  const { status, message } = refused ?? broken;
  if (!isAccepted) endWith(client, replyTo(status, message));
  else if (refused?.refusal === 'server-name') endWith(client, unrecognisedName);
  else client.destroy();
}

const broken = { status: 502, message: 'the connection to the host broke' } as const;
/** The alert by which a TLS server says that it has no such name. */
const unrecognisedName: Buffer = Buffer.from([21, 3, 3, 0, 2, 2, 112]);
const lastWordsMs = 1_000;

/** Sends the last words to a client, which has a moment to read them: what it still sends must not reset the connection. */
function endWith(client: Duplex, words: string | Buffer): void {
  if (client.writable) client.end(words);
  client.resume();
  setTimeout(() => client.destroy(), lastWordsMs).unref();
}

const replyTo = (status: number, message: string): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: text/plain\r\n\r\ntemper egress: ${message}\n`;
