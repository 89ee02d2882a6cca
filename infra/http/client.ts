import { Agent, type Dispatcher, request } from 'undici';
import { isRecord } from '../is-record.ts';
import { bodyOfParts } from './body-parts.ts';

/**
 * One HTTP call with its own time limit: undici's 300 s for headers and for silence are switched off, since generations,
 * weight updates and long polls last longer. A call never gets a status turned into an exception; what can't be reached is
 * an `HttpUnreachable`, what took too long an `HttpTimeout`, and an aborted signal rejects with its own reason.
 */
export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** JSON that was written already, maybe in parts that are long and shared: they are sent as they are. */
  readonly jsonParts?: readonly Buffer[];
  readonly bytes?: Uint8Array;
  readonly timeoutMs: number;
}

export interface HttpReply {
  readonly status: number;
  readonly contentType: string;
  readonly location: string | null;
  readonly bytes: Buffer;
}

export class HttpUnreachable extends Error {
  override readonly name: string = 'HttpUnreachable';
}

export class HttpTimeout extends HttpUnreachable {
  override readonly name: string = 'HttpTimeout';
}

export async function httpCall(call: HttpCall, signal?: AbortSignal): Promise<HttpReply> {
  const limit = AbortSignal.timeout(call.timeoutMs);
  try {
    const response = await request(call.url, {
      ...requestOptions(call),
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const bytes = Buffer.from(await response.body.arrayBuffer());
    return {
      status: response.statusCode,
      contentType: headerOf(response.headers['content-type']),
      location: headerOf(response.headers.location) || null,
      bytes,
    };
  } catch (error) {
    throw attribute(error, call, limit, signal);
  }
}

export interface HttpStream {
  readonly status: number;
  readonly contentType: string;
  /** Ends with the response. Who leaves early leaves the connection to others, if the response ends soon; else it is closed. */
  readonly chunks: AsyncIterable<Buffer>;
}

/** As `httpCall`, but hands on the body as it comes; `timeoutMs` limits each silence, not the whole. */
export async function httpStream(call: HttpCall, signal?: AbortSignal): Promise<HttpStream> {
  const options = { ...requestOptions(call), headersTimeout: call.timeoutMs, bodyTimeout: call.timeoutMs };
  const never = new AbortController().signal;
  try {
    const response = await request(call.url, signal === undefined ? options : { ...options, signal });
    return {
      status: response.statusCode,
      contentType: headerOf(response.headers['content-type']),
      chunks: (async function* () {
        try {
          yield* response.body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
        } catch (error) {
          throw attribute(error, call, never, signal);
        } finally {
          if (!response.body.readableEnded) readRest(response.body);
        }
      })(),
    };
  } catch (error) {
    throw attribute(error, call, never, signal);
  }
}

/** A connection is used again only when its response was read to the end, which may come in a packet of its own. */
const restMs = 1_000;

function readRest(body: Dispatcher.ResponseData['body']): void {
  body.dump({ limit: Number.MAX_SAFE_INTEGER, signal: AbortSignal.timeout(restMs) }).catch(() => {});
}

/** The reply's body as JSON, or null where it is none. */
export function jsonOf(reply: Pick<HttpReply, 'bytes'>): unknown {
  try {
    return JSON.parse(reply.bytes.toString('utf8'));
  } catch {
    return null;
  }
}

/** What a server said went wrong, short enough for a message: FastAPI's `detail`, OpenAI's `error.message`, or the text. */
export function explanationOf(reply: Pick<HttpReply, 'bytes'>): string {
  const body = jsonOf(reply);
  const said = isRecord(body) ? (body.detail ?? errorText(body.error) ?? body.message) : undefined;
  const text = said === undefined ? reply.bytes.toString('utf8') : detailText(said);
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}

/** FastAPI lists what it did not like with the whole input; place and message are enough. */
function detailText(said: unknown): string {
  if (typeof said === 'string') return said;
  if (!Array.isArray(said)) return JSON.stringify(said);
  return said
    .map((issue) =>
      isRecord(issue) && Array.isArray(issue.loc) ? `${issue.loc.join('.')}: ${issue.msg}` : JSON.stringify(issue),
    )
    .join('; ');
}

function errorText(error: unknown): unknown {
  return isRecord(error) ? error.message : error;
}

/** Not the global one: that is Node's own, of another version, wherever `node:http` was loaded before undici. */
const agent = new Agent();

function requestOptions(call: HttpCall) {
  const { method, json, jsonParts } = call;
  const rest = { dispatcher: agent, method, headersTimeout: 0, bodyTimeout: 0 };
  if (json === undefined && jsonParts === undefined) {
    return { ...rest, headers: call.headers ?? {}, body: call.bytes ?? null };
  }
  const { body, headers } = bodyOfParts(jsonParts ?? [Buffer.from(JSON.stringify(json))]);
  return { ...rest, headers: { 'content-type': 'application/json', ...headers, ...call.headers }, body };
}

function headerOf(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

function attribute(error: unknown, call: HttpCall, limit: AbortSignal, signal?: AbortSignal): unknown {
  if (signal?.aborted === true) return signal.reason;
  const what = `${call.method} ${call.url}`;
  const code = codeOf(error);
  if (limit.aborted || code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return new HttpTimeout(`${what}: expected an answer within ${call.timeoutMs} ms, got none`, { cause: error });
  }
  const reason = error instanceof Error ? error.message || code : String(error);
  return new HttpUnreachable(`${what}: ${reason || 'connection failed'}`, { cause: error });
}

function codeOf(error: unknown): string {
  return isRecord(error) && typeof error.code === 'string' ? error.code : '';
}
