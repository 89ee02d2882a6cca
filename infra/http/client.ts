import { Readable } from 'node:stream';
import { Agent, type Dispatcher, request } from 'undici';
import { isRecord } from '../is-record.ts';

/** A part shorter than this is copied, because a copy costs less than a write of its own. */
const longPart = 64 * 1024;

/**
 * One HTTP call with its own time limit. undici's limits of 300 s for headers and for silence are off, since generations, weight
 * updates and long polls last longer. No status throws. An unreachable server throws `HttpUnreachable`, an exceeded limit
 * `HttpTimeout`, and an aborted signal its own reason.
 */
export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** JSON that is already encoded, in parts that may be long and shared; they are sent without a copy. */
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
  /**
   * The body as it arrives. If the reader stops early, the connection is reused if the response ends soon, and closed
   * otherwise.
   */
  readonly chunks: AsyncIterable<Buffer>;
}

/** Makes a call and returns the body as it arrives. `timeoutMs` limits each silence, not the whole call. */
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

/** Time to read the rest of a response, whose end may be a packet of its own. Only then can its connection be reused. */
const restMs = 1_000;

function readRest(body: Dispatcher.ResponseData['body']): void {
  // Not a signal with a time limit: one would expire for each call, and make an error, long after the response has ended.
  const cut = setTimeout(() => body.destroy(), restMs).unref();
  body
    .dump({ limit: Number.MAX_SAFE_INTEGER })
    .catch(() => {})
    .finally(() => clearTimeout(cut));
}

/** The reply's body as JSON; null if it is not valid JSON. */
export function jsonOf(reply: Pick<HttpReply, 'bytes'>): unknown {
  try {
    return JSON.parse(reply.bytes.toString('utf8'));
  } catch {
    return null;
  }
}

/** The server's explanation of an error, short enough for a message: FastAPI's `detail`, OpenAI's `error.message`, or the text. */
export function explanationOf(reply: Pick<HttpReply, 'bytes'>): string {
  const body = jsonOf(reply);
  const detail = isRecord(body) ? (body.detail ?? errorText(body.error) ?? body.message) : undefined;
  const text = detail === undefined ? reply.bytes.toString('utf8') : detailText(detail);
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}

/** Shortens FastAPI's list of problems, which repeats the whole input, to their locations and messages. */
function detailText(detail: unknown): string {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return JSON.stringify(detail);
  return detail
    .map((issue) =>
      isRecord(issue) && Array.isArray(issue.loc) ? `${issue.loc.join('.')}: ${issue.msg}` : JSON.stringify(issue),
    )
    .join('; ');
}

function errorText(error: unknown): unknown {
  return isRecord(error) ? error.message : error;
}

/** The agent of this undici. The global one may be Node's own, of another version, if `node:http` was loaded first. */
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

/** Assembles a request's body from parts. Long parts are sent without a copy, since several requests may share them. */
function bodyOfParts(parts: readonly Buffer[]): {
  readonly body: Buffer | Readable;
  readonly headers: Readonly<Record<string, string>>;
} {
  const writes = joinShortParts(parts);
  const [only = Buffer.alloc(0), ...others] = writes;
  if (others.length === 0) return { body: only, headers: {} };
  const length = writes.reduce((sum, part) => sum + part.length, 0);
  return { body: Readable.from(writes, { objectMode: false }), headers: { 'content-length': String(length) } };
}

function joinShortParts(parts: readonly Buffer[]): readonly Buffer[] {
  const writes: Buffer[] = [];
  let short: Buffer[] = [];
  for (const part of parts) {
    if (part.length < longPart) short.push(part);
    else {
      writes.push(Buffer.concat(short), part);
      short = [];
    }
  }
  return [...writes, Buffer.concat(short)].filter(({ length }) => length > 0);
}
