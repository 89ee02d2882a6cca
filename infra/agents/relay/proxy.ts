/**
 * Forwards each request to a gateway's socket: the one that has the session, once its replies have said so, and any other
 * when that one is away. While all are away the request is held and sent again as it was, which makes it the same turn: a
 * gateway's death is not the agent's failure.
 */
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventsOf, isKeepAlive } from './events.ts';
import { createGateways, type Gateways } from './gateways.ts';
import { askAgainHeader, holderHeader, ofMessage } from './protocol.ts';

// An import would also evaluate http's WebSocket getters, which load undici: half of what a short agent's start costs.
const { createServer, request: send } = process.getBuiltinModule('node:http');

export interface ProxyOptions {
  /** Holds the gateways' sockets. */
  readonly directory: string;
  /** How long a request is held while no gateway has it. */
  readonly holdMs: number;
}

const backoff = { firstMs: 25, factor: 2, maxMs: 1000 } as const;
/** A gateway that had the request for so long was there: one that goes away after it is another absence. */
const presentMs = 5_000;

export function createProxy({ directory, holdMs }: ProxyOptions): Server {
  const gateways = createGateways(directory);
  return createServer((request, response) => {
    hold(request, response, gateways, holdMs).catch((error: unknown) => {
      process.stderr.write(`relay: ${error instanceof Error ? error.message : error}\n`);
      response.destroy();
    });
  });
}

async function hold(
  request: IncomingMessage,
  response: ServerResponse,
  gateways: Gateways,
  holdMs: number,
): Promise<void> {
  const body = await buffer(request);
  const exchange: Exchange = {
    request,
    response,
    body,
    headers: { ...ofMessage(request.headers), 'content-length': body.length },
    delivered: [],
  };
  let awaySince: number | undefined;
  let waitMs: number = backoff.firstMs;
  for (;;) {
    const askedAt = Date.now();
    const failure = await attempt(exchange, gateways);
    if (failure === null || response.destroyed) return;
    gateways.heard(null);
    const now = Date.now();
    if (awaySince === undefined || now - askedAt >= Math.min(presentMs, holdMs)) {
      awaySince = now;
      waitMs = backoff.firstMs;
    }
    if (now - awaySince >= holdMs) return giveUp(response, failure);
    await sleep(waitMs);
    waitMs = Math.min(waitMs * backoff.factor, backoff.maxMs);
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
  readonly headers: OutgoingHttpHeaders;
  /** What the client has of the reply, without keep-alives: a second reply to the same request must begin with it. */
  readonly delivered: Buffer[];
}

/** Why a request must be sent again: no reply, or one that says so. */
type Failure = Error | Refused;

interface Refused {
  readonly reply: IncomingMessage;
  readonly body: Buffer;
}

/** Sends once. Null when the exchange is over. */
function attempt(exchange: Exchange, gateways: Gateways): Promise<Failure | null> {
  const { request, response, body, headers } = exchange;
  const socketPath = gateways.next();
  return new Promise((resolve) => {
    const upstream = send({ socketPath, method: request.method, path: request.url, headers });
    const abandon = () => upstream.destroy();
    const settle = (result: Failure | null) => {
      response.off('close', abandon);
      resolve(result);
    };
    response.once('close', abandon);
    upstream.once('error', settle);
    upstream.once('response', (reply) => {
      if (reply.headers[askAgainHeader] !== undefined) {
        buffer(reply).then((text) => settle({ reply, body: text }), settle);
        return;
      }
      const holder = reply.headers[holderHeader];
      if (typeof holder === 'string') gateways.heard(holder);
      deliver(reply, exchange).then(settle, settle);
    });
    upstream.end(body);
  });
}

/** Passes the reply on. A reply that breaks off rejects, and is continued by the next attempt's. */
async function deliver(reply: IncomingMessage, { response, delivered }: Exchange): Promise<null> {
  const { statusCode = 502, headers } = reply;
  if (!response.headersSent) response.writeHead(statusCode, ofMessage(headers));
  else if (statusCode !== response.statusCode) return refuse(response, `another status, ${statusCode}`);
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  const known = Buffer.concat(delivered);
  let at = 0;
  for await (const piece of isStream ? eventsOf(reply) : (reply as AsyncIterable<Buffer>)) {
    if (isStream && isKeepAlive(piece)) {
      response.write(piece);
      continue;
    }
    const again = Math.max(Math.min(piece.length, known.length - at), 0);
    if (again > 0 && !known.subarray(at, at + again).equals(piece.subarray(0, again))) {
      return refuse(response, 'other content');
    }
    at += again;
    const fresh = piece.subarray(again);
    if (fresh.length === 0) continue;
    delivered.push(fresh);
    response.write(fresh);
  }
  if (!reply.complete) throw new Error('the reply broke off');
  response.end();
  return null;
}

/** The client has begun to read another reply than this one. */
function refuse(response: ServerResponse, difference: string): null {
  process.stderr.write(`relay: the gateway repeated a reply with ${difference}; the connection is closed\n`);
  response.destroy();
  return null;
}

/** With the gateway's own words, where there are any: they are in the agent's dialect. */
function giveUp(response: ServerResponse, failure: Failure): void {
  if (response.headersSent) {
    response.destroy();
  } else if ('reply' in failure) {
    const { statusCode = 503, headers } = failure.reply;
    response.writeHead(statusCode, ofMessage(headers)).end(failure.body);
  } else {
    const message = `the model gateway does not answer: ${failure.message}`;
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '5' });
    // In a form that the clients of each dialect read.
    response.end(JSON.stringify({ type: 'error', error: { message, type: 'api_error', code: 'gateway_unavailable' } }));
  }
}
