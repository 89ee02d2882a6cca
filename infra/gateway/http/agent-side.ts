import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { sampledTokensOf } from '../../../workflows/algorithms/turns.ts';
import { endHeader, gatewayNameHeader, hostToolsPath, retryHeader } from '../../agents/relay/protocol.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { Dialect, DialectRequest, FinishedReply } from '../dialects/dialect.ts';
import { dialectOf } from '../dialects/index.ts';
import { GatewayError, toGatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import { createSecretCheck } from '../secret.ts';
import type { RequestOrigin } from '../sessions/samples.ts';
import type { Session } from '../sessions/session.ts';
import type { RemoteSession } from '../sessions/session-files.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { ReplyingTurn } from '../turns/turn.ts';
import { createBodyReader } from './body.ts';
import type { Forward } from './forward.ts';
import { createHostToolSide } from './host-tool-side.ts';
import { sendJson } from './listener.ts';
import { originOf } from './request-origin.ts';

export interface AgentSideDeps {
  readonly sessions: Sessions;
  readonly stackKeys: readonly Uint8Array[];
  readonly modelName: string;
  /** The name of this gateway, among those that share the sessions. */
  readonly name: string;
  /** Forwards a request to the gateway that has its session. */
  readonly forward: Forward;
  /** Returns the session on whose socket a connection arrived; null for one that may serve any session. */
  readonly sessionOf: (socket: Socket) => string | null;
  readonly onError: (session: string | null, error: GatewayError) => void;
}

interface AgentCall {
  readonly dialect: Dialect;
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Serves agents: the model calls and the host tools of their own session, and nothing else. The body is not read until
 * the secret is verified.
 */
export function createAgentSide(deps: AgentSideDeps): RequestListener {
  const readBody = createBodyReader<Session>();
  const sessionOfSecret = createSecretCheck(deps.stackKeys);
  const requests = createRequestCount();
  const serveHostTools = createHostToolSide({ readBody });

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const dialect = dialectOf(path, request.headers);
    const own = deps.sessionOf(request.socket);
    let session: Session | null = null;
    try {
      if (path === '/') return void response.writeHead(200).end();
      if (own !== null) requests.add(own, response);
      const found = await authenticate({ id: sessionOfSecret(presentedSecret(request)), own, sessions: deps.sessions });
      if ('holder' in found) return await deps.forward(request, response, found.holder);
      session = found;
      response.setHeader(gatewayNameHeader, deps.name);
      await serve({ dialect, path, request, response }, session);
    } catch (error) {
      if (response.destroyed || response.writableEnded) return;
      const failure = toGatewayError(error);
      deps.onError(session?.opened.session ?? own, failure);
      sendError(dialect, failure, response);
    }
  }

  async function serve({ dialect, path, request, response }: AgentCall, session: Session): Promise<void> {
    if (path === '/v1/models' || path.startsWith('/v1/models/')) {
      expectMethod('GET', path, request);
      const { all, one } = dialect.models;
      return sendJson(response, 200, path === '/v1/models' ? all(deps.modelName) : one(deps.modelName));
    }
    if (path === hostToolsPath) return serveHostTools(request, response, session);
    const { counting } = dialect;
    if (path !== dialect.path && path !== counting?.path) {
      throw new GatewayError('not-found', `there is nothing at ${path.slice(0, 200)}`);
    }
    expectMethod('POST', path, request);
    const body = await readBody(request, session, dialect.listKey);
    if (path === counting?.path) {
      return sendJson(response, 200, counting.reply(await session.countTokens(counting.read(body))));
    }
    await answer(dialect.read(body), originOf(request.headers), response, session);
  }

  async function answer(
    modelRequest: DialectRequest,
    origin: RequestOrigin,
    response: ServerResponse,
    session: Session,
  ): Promise<void> {
    const { turn, leave } = await session.ask(modelRequest, origin);
    // The client may have left while its request waited.
    if (response.closed) return leave(false);
    response.once('close', () => leave(response.writableFinished));
    if (modelRequest.delivery === 'whole') return whole(modelRequest, turn, response);
    const failure = await stream(modelRequest, turn, response);
    if (failure !== null) deps.onError(session.opened.session, failure);
  }

  return (request, response) => {
    route(request, response).catch((error: unknown) => {
      deps.onError(null, toGatewayError(error));
      response.destroy();
    });
  };
}

/** Returns the session of a request's secret. Throws a GatewayError when there is none that can be used here. */
async function authenticate({ id, own, sessions }: Presented): Promise<Session | RemoteSession> {
  if (id === null || (own !== null && own !== id)) {
    throw new GatewayError('unauthorized', "expected the session's secret as a bearer token or x-api-key; got another");
  }
  const session = await sessions.find(id);
  if (session === null) throw new GatewayError('unknown-session', 'this session was never opened');
  if ('sealed' in session) throw new GatewayError('session-closed', 'this session is sealed');
  return session;
}

interface Presented {
  /** The session that the secret opens; null for a forged secret. */
  readonly id: string | null;
  /** The session on whose socket the request arrived; null for any. */
  readonly own: string | null;
  readonly sessions: Sessions;
}

/** Counts the requests of each session that are being answered. */
function createRequestCount() {
  const counts = new Map<string, number>();
  return {
    /** Counts a request until its response is closed. Throws a GatewayError for one too many. */
    add(session: string, response: ServerResponse): void {
      const count = counts.get(session) ?? 0;
      if (count >= limits.sessionRequests) {
        throw new GatewayError('too-many-turns', `${count} requests are being answered; wait for one to end`);
      }
      counts.set(session, count + 1);
      response.once('close', () => {
        const left = (counts.get(session) ?? 1) - 1;
        if (left === 0) counts.delete(session);
        else counts.set(session, left);
      });
    },
  };
}

async function whole(
  modelRequest: DialectRequest,
  turn: ReplyingTurn<TurnRecord>,
  response: ServerResponse,
): Promise<void> {
  sendJson(response, 200, modelRequest.whole(finishedReply(turn, await turn.result)));
}

/**
 * Streams a reply, as fast as its client reads it. The response's head waits for the first text, so that an earlier failure gets
 * its own status; keep-alives start when that takes long. Returns the error that ended the stream early, or null.
 */
async function stream(
  modelRequest: DialectRequest,
  turn: ReplyingTurn<TurnRecord>,
  response: ServerResponse,
): Promise<GatewayError | null> {
  const writer = modelRequest.stream(turn);
  const write = (next: () => string): void => {
    const isFirst = !response.headersSent;
    if (isFirst) response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    // `begin` comes first, since a writer may number its events.
    response.write(isFirst ? writer.begin() + next() : next());
    keepAlive.refresh();
  };
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) write(() => writer.keepAlive());
  }, limits.keepAliveMs);
  try {
    for await (const deltas of turn.deltas()) {
      for (let at = 0; at < deltas.length; at += limits.deltasAtOnce) {
        const some = deltas.slice(at, at + limits.deltasAtOnce);
        write(() => some.map((delta) => writer.delta(delta)).join(''));
        if (response.writableNeedDrain) await untilRead(response);
      }
    }
    const reply = finishedReply(turn, await turn.result);
    write(() => writer.finish(reply));
    return null;
  } catch (error) {
    const failure = toGatewayError(error);
    if (!response.headersSent && !writer.failsInStream(failure)) throw failure;
    if (response.destroyed) return null;
    // The connection is closed as if the process had been killed: the relay retries, and the agent notices nothing.
    if (failure.kind === 'gateway-closing') response.destroy();
    else write(() => writer.fail(failure));
    return failure;
  } finally {
    clearInterval(keepAlive);
    if (response.headersSent && !response.destroyed) response.end();
  }
}

/** Resolves when a client has read what was written, or has left. What one that reads nothing is sent would stay in memory. */
function untilRead(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = (): void => {
    response.off('drain', end).off('close', end);
    resolve();
  };
  response.once('drain', end).once('close', end);
  if (response.closed) end();
  return promise;
}

function finishedReply({ key, createdAt }: ReplyingTurn<TurnRecord>, turn: TurnRecord): FinishedReply {
  return {
    key,
    createdAt,
    promptTokens: turn.promptLength,
    reply: turn.reply,
    finishReason: turn.finishReason,
    sampledTokens: sampledTokensOf(turn),
  };
}

function expectMethod(method: 'GET' | 'POST', path: string, request: IncomingMessage): void {
  if (request.method !== method)
    throw new GatewayError('wrong-method', `${path}: expected ${method}, got ${request.method}`);
}

function sendError(dialect: Dialect, error: GatewayError, response: ServerResponse): void {
  const { status, body } = dialect.error(error);
  const headers: Record<string, string> = { 'x-should-retry': String(error.retryable) };
  if (error.retryable) headers['retry-after'] = String(limits.retryAfterSec);
  if (error.retriedByRelay) headers[retryHeader] = '1';
  if (error.kind === 'submitted') headers[endHeader] = '1';
  sendJson(response, status, body, headers);
}

function presentedSecret({ headers }: IncomingMessage): string {
  const bearer = headers.authorization?.match(/^Bearer +(.+)$/i)?.[1];
  const key = headers['x-api-key'];
  return (bearer ?? (typeof key === 'string' ? key : '')).trim();
}
