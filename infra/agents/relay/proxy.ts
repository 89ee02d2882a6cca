import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { isKeepAlive, splitEvents } from './events.ts';
import { endHeader, endToEndHeaders, mostUnread, requestHeader, retryHeader, unreadHeader } from './protocol.ts';
import type { Call, Reply, Route } from './route.ts';

// An import would also evaluate http's WebSocket getters, which load undici: half the start-up time of a short agent.
const { createServer } = process.getBuiltinModule('node:http');

const backoff = { firstMs: 25, factor: 2, maxMs: 1000 } as const;
/** A gateway that kept the request this long was reachable: a failure after that starts a new outage. */
const reachableMs = 5_000;

/**
 * Creates a server that forwards each request to a gateway over a route. While no gateway answers, the same request is sent
 * again, which the gateways treat as the same turn: the death of a gateway or of the route is not the agent's failure. `onEnd` is
 * called instead of an answer when the agent, which has handed in its work, calls the model once more.
 */
export function createProxy(route: Route, onEnd?: () => void): Server {
  const names = createNames();
  return createServer((request, response) => {
    forward(request, response, { route, onEnd, names }).catch((error: unknown) => {
      process.stderr.write(`relay: ${error instanceof Error ? error.message : error}\n`);
      response.destroy();
    });
  });
}

/** Forwards one request until the exchange is over or no gateway has answered for the route's `retryMs`. */
async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  { route, onEnd, names }: Way,
): Promise<void> {
  const body = await buffer(request);
  const { name, headers: named } = names.next();
  const headers = { ...endToEndHeaders(request.headers), ...named, 'content-length': body.length };
  response.once('close', () => {
    if (!response.writableFinished) names.unread(name);
  });
  const { method = 'GET', url = '/' } = request;
  const exchange: Exchange = { call: { method, path: url, headers, body }, response, onEnd, delivered: [] };
  const { retryMs } = route;
  let outageSince: number | undefined;
  let waitMs: number = backoff.firstMs;
  for (;;) {
    const sentAt = performance.now();
    const failure = await send(exchange, route);
    if (failure === null || response.destroyed) return;
    route.failed();
    const now = performance.now();
    if (outageSince === undefined || now - sentAt >= Math.min(reachableMs, retryMs)) {
      outageSince = now;
      waitMs = backoff.firstMs;
    }
    if (now - outageSince >= retryMs) {
      names.unread(name);
      return giveUp(response, failure);
    }
    await route.pause(waitMs);
    waitMs = Math.min(waitMs * backoff.factor, backoff.maxMs);
  }
}

interface Way {
  readonly route: Route;
  readonly onEnd: (() => void) | undefined;
  readonly names: RequestNames;
}

/** The names of the agent's requests, and those whose replies have not reached it whole: what follows may be a retry of them. */
interface RequestNames {
  next(): { readonly name: string; readonly headers: Readonly<Record<string, string>> };
  unread(name: string): void;
}

function createNames(): RequestNames {
  // Another agent of the same session has a relay of its own.
  const prefix = `${process.pid.toString(36)}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 10)}`;
  let count = 0;
  let unread: readonly string[] = [];
  return {
    next() {
      count += 1;
      const name = `${prefix}-${count}`;
      return { name, headers: { [requestHeader]: name, [unreadHeader]: unread.join(',') } };
    },
    unread(name) {
      unread = [...unread.filter((one) => one !== name), name].slice(-mostUnread);
    },
  };
}

interface Exchange extends Pick<Way, 'onEnd'> {
  readonly call: Call;
  readonly response: ServerResponse;
  /** The reply as far as the client has it, without keep-alives: a second reply to the same request must begin with it. */
  readonly delivered: Buffer[];
}

/** The reason to send a request again: no reply, or one that asks for a retry. */
type Failure = Error | RetryReply;

interface RetryReply {
  readonly reply: Reply;
  readonly body: Buffer;
}

/** Sends the request once. Returns null when the exchange is over. */
async function send(exchange: Exchange, route: Route): Promise<Failure | null> {
  const { call, response } = exchange;
  const { reply: replied, abandon } = route.send(call);
  response.once('close', abandon);
  try {
    const reply = await replied;
    if (reply.headers[retryHeader] !== undefined) return { reply, body: await buffer(reply.body) };
    if (reply.headers[endHeader] !== undefined && exchange.onEnd !== undefined) {
      exchange.onEnd();
      return null;
    }
    return await deliver(reply, exchange);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    response.off('close', abandon);
  }
}

/** Passes the reply on to the client. Rejects if the reply is interrupted; the reply to a retry then continues it. */
async function deliver(reply: Reply, { response, delivered }: Exchange): Promise<null> {
  const { status, headers, body } = reply;
  if (!response.headersSent) response.writeHead(status, endToEndHeaders(headers));
  else if (status !== response.statusCode) return abort(response, `another status, ${status}`);
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  const known = Buffer.concat(delivered);
  let at = 0;
  for await (const piece of isStream ? splitEvents(body) : body) {
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
  if (!reply.isComplete()) throw new Error('the reply was interrupted');
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
    const { status, headers } = failure.reply;
    response.writeHead(status, endToEndHeaders(headers)).end(failure.body);
  } else {
    const message = `the model gateway does not answer: ${failure.message}`;
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '5' });
    // The clients of every dialect can read this form.
    response.end(JSON.stringify({ type: 'error', error: { message, type: 'api_error', code: 'gateway_unavailable' } }));
  }
}
