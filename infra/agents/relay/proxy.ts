import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { isKeepAlive, splitEvents } from './events.ts';
import { createGateways, type Gateways } from './gateways.ts';
import { endToEndHeaders, gatewayNameHeader, retryHeader } from './protocol.ts';

// An import would also evaluate http's WebSocket getters, which load undici: half the start-up time of a short agent.
const { createServer, request: connect } = process.getBuiltinModule('node:http');

export interface ProxyOptions {
  /** The directory of the gateways' sockets. */
  readonly directory: string;
  /** Limit in ms on how long a request is retried while no gateway answers it. */
  readonly retryMs: number;
}

const backoff = { firstMs: 25, factor: 2, maxMs: 1000 } as const;
/** A gateway that kept the request this long was reachable: a failure after that starts a new outage. */
const reachableMs = 5_000;

/**
 * Creates a server that forwards each request to a gateway's socket: the gateway that serves the session, once a reply has named
 * it, or any other when that one is unreachable. While none answers, the same request is sent again, which the gateways treat as
 * the same turn: a gateway's death is not the agent's failure.
 */
export function createProxy({ directory, retryMs }: ProxyOptions): Server {
  const gateways = createGateways(directory);
  return createServer((request, response) => {
    forward(request, response, gateways, retryMs).catch((error: unknown) => {
      process.stderr.write(`relay: ${error instanceof Error ? error.message : error}\n`);
      response.destroy();
    });
  });
}

/** Forwards one request until the exchange is over or no gateway has answered for `retryMs`. */
async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  gateways: Gateways,
  retryMs: number,
): Promise<void> {
  const body = await buffer(request);
  const exchange: Exchange = {
    request,
    response,
    body,
    headers: { ...endToEndHeaders(request.headers), 'content-length': body.length },
    delivered: [],
  };
  let outageSince: number | undefined;
  let waitMs: number = backoff.firstMs;
  for (;;) {
    const sentAt = Date.now();
    const failure = await send(exchange, gateways);
    if (failure === null || response.destroyed) return;
    gateways.failed();
    const now = Date.now();
    if (outageSince === undefined || now - sentAt >= Math.min(reachableMs, retryMs)) {
      outageSince = now;
      waitMs = backoff.firstMs;
    }
    if (now - outageSince >= retryMs) return giveUp(response, failure);
    await sleep(waitMs);
    waitMs = Math.min(waitMs * backoff.factor, backoff.maxMs);
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
  readonly headers: OutgoingHttpHeaders;
  /** The reply as far as the client has it, without keep-alives: a second reply to the same request must begin with it. */
  readonly delivered: Buffer[];
}

/** The reason to send a request again: no reply, or one that asks for a retry. */
type Failure = Error | RetryReply;

interface RetryReply {
  readonly reply: IncomingMessage;
  readonly body: Buffer;
}

/** Sends the request once. Returns null when the exchange is over. */
function send(exchange: Exchange, gateways: Gateways): Promise<Failure | null> {
  const { request, response, body, headers } = exchange;
  const socketPath = gateways.next();
  return new Promise((resolve) => {
    const upstream = connect({ socketPath, method: request.method, path: request.url, headers });
    const abandon = () => upstream.destroy();
    const settle = (result: Failure | null) => {
      response.off('close', abandon);
      resolve(result);
    };
    response.once('close', abandon);
    upstream.once('error', settle);
    upstream.once('response', (reply) => {
      if (reply.headers[retryHeader] !== undefined) {
        buffer(reply).then((text) => settle({ reply, body: text }), settle);
        return;
      }
      const name = reply.headers[gatewayNameHeader];
      if (typeof name === 'string') gateways.served(name);
      deliver(reply, exchange).then(settle, settle);
    });
    upstream.end(body);
  });
}

/** Passes the reply on to the client. Rejects if the reply is interrupted; the reply to a retry then continues it. */
async function deliver(reply: IncomingMessage, { response, delivered }: Exchange): Promise<null> {
  const { statusCode = 502, headers } = reply;
  if (!response.headersSent) response.writeHead(statusCode, endToEndHeaders(headers));
  else if (statusCode !== response.statusCode) return abort(response, `another status, ${statusCode}`);
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  const known = Buffer.concat(delivered);
  let at = 0;
  for await (const piece of isStream ? splitEvents(reply) : (reply as AsyncIterable<Buffer>)) {
    if (isStream && isKeepAlive(piece)) {
      response.write(piece);
      continue;
    }
    const repeated = Math.max(Math.min(piece.length, known.length - at), 0);
    if (repeated > 0 && !known.subarray(at, at + repeated).equals(piece.subarray(0, repeated))) {
      return abort(response, 'other content');
    }
    at += repeated;
    const fresh = piece.subarray(repeated);
    if (fresh.length === 0) continue;
    delivered.push(fresh);
    response.write(fresh);
  }
  if (!reply.complete) throw new Error('the reply was interrupted');
  response.end();
  return null;
}

/** Closes the connection: the client has read part of a different reply, which this one can't continue. */
function abort(response: ServerResponse, difference: string): null {
  process.stderr.write(`relay: the gateway repeated a reply with ${difference}; the connection is closed\n`);
  response.destroy();
  return null;
}

/** Answers with the gateway's last error, which is in the agent's dialect, or with an error of the relay if there is none. */
function giveUp(response: ServerResponse, failure: Failure): void {
  if (response.headersSent) {
    response.destroy();
  } else if ('reply' in failure) {
    const { statusCode = 503, headers } = failure.reply;
    response.writeHead(statusCode, endToEndHeaders(headers)).end(failure.body);
  } else {
    const message = `the model gateway does not answer: ${failure.message}`;
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '5' });
    // The clients of every dialect can read this form.
    response.end(JSON.stringify({ type: 'error', error: { message, type: 'api_error', code: 'gateway_unavailable' } }));
  }
}
