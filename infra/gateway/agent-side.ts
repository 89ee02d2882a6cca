import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Dialect, DialectRequest, FinishedReply } from './dialects/dialect.ts';
import { commonDialect, dialects } from './dialects/index.ts';
import { readJsonBody, sendJson } from './http.ts';
import { limits } from './limits.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { sessionOfSecret } from './secret.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import type { Turn } from './turn.ts';
import type { TurnRecord } from './turn-record.ts';

export interface AgentSideDeps {
  readonly sessions: Sessions;
  readonly stackKey: Uint8Array;
  readonly modelName: string;
  readonly onRefusal: (session: string | null, refusal: Refusal) => void;
}

/** What agents reach: model calls of their own session and nothing else. Whoever it is, nothing is read before the secret. */
export function createAgentSide(deps: AgentSideDeps): RequestListener {
  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const dialect = dialects.find((candidate) => candidate.path === path) ?? commonDialect;
    let session: Session | null = null;
    try {
      if (path === '/') return void response.writeHead(200).end();
      session = await authenticate(request);
      await serve(path, request, response, session);
    } catch (error) {
      if (response.destroyed || response.writableEnded) return;
      const refusal = refusalOf(error);
      deps.onRefusal(session?.opened.session ?? null, refusal);
      refuse(dialect, refusal, response);
    }
  }

  async function authenticate(request: IncomingMessage): Promise<Session> {
    const id = sessionOfSecret(deps.stackKey, presentedSecret(request));
    if (id === null) {
      throw new Refusal('unauthorized', "expected the session's secret as a bearer token or x-api-key; got another");
    }
    const session = await deps.sessions.find(id);
    if (session === null) throw new Refusal('unknown-session', 'this session was never opened');
    if ('sealed' in session) throw new Refusal('session-closed', 'this session is sealed');
    return session;
  }

  async function serve(path: string, request: IncomingMessage, response: ServerResponse, session: Session) {
    const dialect = dialects.find((candidate) => candidate.path === path);
    if (dialect === undefined) return serveModels(path, request, response);
    if (request.method !== 'POST') throw new Refusal('wrong-method', `${path}: expected POST, got ${request.method}`);
    const asked = dialect.read(await readJsonBody(request));
    const turn = await session.ask(asked);
    const leave = turn.follow();
    response.once('close', leave);
    await (asked.delivery === 'stream' ? stream(asked, turn, response) : whole(asked, turn, response));
  }

  function serveModels(path: string, request: IncomingMessage, response: ServerResponse): void {
    const model = { id: deps.modelName, object: 'model', created: 0, owned_by: 'temper' };
    const isList = path === '/v1/models';
    if (!isList && !path.startsWith('/v1/models/'))
      throw new Refusal('not-found', `there is nothing at ${path.slice(0, 200)}`);
    if (request.method !== 'GET') throw new Refusal('wrong-method', `${path}: expected GET, got ${request.method}`);
    sendJson(response, 200, isList ? { object: 'list', data: [model] } : model);
  }

  return (request, response) => {
    route(request, response).catch((error: unknown) => {
      deps.onRefusal(null, refusalOf(error));
      response.destroy();
    });
  };
}

async function whole(asked: DialectRequest, turn: Turn<TurnRecord>, response: ServerResponse): Promise<void> {
  sendJson(response, 200, asked.whole(finishedReply(turn, await turn.result)));
}

/**
 * The head of the response waits for the first text, so that what fails before it gets a status of its own; keep-alives
 * begin when that takes long.
 */
async function stream(asked: DialectRequest, turn: Turn<TurnRecord>, response: ServerResponse): Promise<void> {
  const writer = asked.stream(turn);
  const write = (text: string): void => {
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write(writer.begin() + text);
    } else response.write(text);
    keepAlive.refresh();
  };
  const keepAlive = setInterval(() => write(': keep-alive\n\n'), limits.keepAliveMs);
  try {
    for await (const delta of turn.deltas()) write(writer.delta(delta));
    write(writer.finish(finishedReply(turn, await turn.result)));
    response.end();
  } catch (error) {
    if (!response.headersSent) throw error;
    response.end(writer.fail(refusalOf(error)));
  } finally {
    clearInterval(keepAlive);
  }
}

function finishedReply({ key, createdAt }: Turn<TurnRecord>, turn: TurnRecord): FinishedReply {
  return {
    key,
    createdAt,
    reply: turn.reply,
    finishReason: turn.finishReason,
    promptTokens: turn.promptLength,
    sampledTokens: turn.sampledIds.length,
  };
}

function refuse(dialect: Dialect, refusal: Refusal, response: ServerResponse): void {
  const { status, body } = dialect.error(refusal);
  const headers: Record<string, string> = { 'x-should-retry': String(refusal.retryable) };
  if (refusal.retryable) headers['retry-after'] = String(limits.retryAfterSec);
  sendJson(response, status, body, headers);
}

function presentedSecret({ headers }: IncomingMessage): string {
  const bearer = headers.authorization?.match(/^Bearer +(.+)$/i)?.[1];
  const key = headers['x-api-key'];
  return (bearer ?? (typeof key === 'string' ? key : '')).trim();
}
