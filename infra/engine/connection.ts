import {
  explanationOf,
  type HttpReply,
  HttpTimeout,
  HttpUnreachable,
  httpCall,
  httpStream,
  jsonOf,
} from '../http/client.ts';
import { invalid, unavailable } from './checks.ts';

/** Time limits of each kind of call; past them the engine counts as unreachable. */
export const engineTimeouts = {
  /** Health, models, labels: the engine only has to answer. */
  controlMs: 10_000,
  /** Silence between two tokens. Long, because a paused or busy engine has not failed. */
  silenceMs: 900_000,
  /** The timeout for aborting a request; short, so that a cancelled caller does not wait for an engine that is gone. */
  abortMs: 2_000,
  /** Pause, reload, adapter loading: the engine reads weights from a disk. */
  updateMs: 720_000,
} as const;

export interface EngineConnection {
  readonly url: string;
  get(path: string, signal?: AbortSignal): Promise<HttpReply>;
  post(path: string, body: unknown, timeoutMs: number, signal?: AbortSignal): Promise<HttpReply>;
  /** Sends JSON. Streams the body of a 200; returns a reply of any other status whole. */
  stream(
    path: string,
    json: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<{ readonly chunks: AsyncIterable<Buffer> } | { readonly refused: HttpReply }>;
}

/**
 * The header with the policy whose whole weights a request is about. The embedded policy server has some for each policy; other
 * engines, which serve one policy, ignore it.
 */
const policyHeader = 'x-temper-policy';

/** A server, and what each request to it carries. */
export interface EngineAddress {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** The policy whose whole weights the requests are about; undefined: whichever is in service. */
  readonly policy?: string | undefined;
}

export function createEngineConnection({ url, apiKey, policy }: EngineAddress): EngineConnection {
  const base = url.replace(/\/+$/, '');
  const headers = {
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...(policy !== undefined && { [policyHeader]: policy }),
  };
  return {
    url: base,
    get: (path, signal) =>
      reached(httpCall({ method: 'GET', url: base + path, headers, timeoutMs: engineTimeouts.controlMs }, signal)),
    post: (path, body, timeoutMs, signal) =>
      reached(httpCall({ method: 'POST', url: base + path, headers, json: body, timeoutMs }, signal)),
    async stream(path, json, signal) {
      const call = {
        method: 'POST',
        url: base + path,
        headers,
        jsonParts: json,
        timeoutMs: engineTimeouts.silenceMs,
      } as const;
      const opened = await reached(httpStream(call, signal));
      if (opened.status === 200) return { chunks: reachedChunks(opened.chunks) };
      const parts: Buffer[] = [];
      for await (const chunk of reachedChunks(opened.chunks)) parts.push(chunk);
      const { status, contentType } = opened;
      return { refused: { status, contentType, location: null, bytes: Buffer.concat(parts) } };
    },
  };
}

/** Returns the JSON body of a 200; throws the failure of any other status. */
export function bodyOf(reply: HttpReply, what: string): unknown {
  if (reply.status === 200) return jsonOf(reply);
  throw failureOf(reply, what);
}

/** Turns a status other than 200 into a failure: a 400, 413 or 422 blames the request, any other status the engine. */
export function failureOf(reply: HttpReply, what: string): Error {
  const message = `${what}: expected 200, got ${reply.status}: ${explanationOf(reply)}`;
  const requestAtFault = reply.status === 400 || reply.status === 413 || reply.status === 422;
  return requestAtFault ? invalid(message) : unavailable(message);
}

/** Throws unless the status is 200; `missing` advises what to do about a route that the server lacks. */
export function expectOk(reply: HttpReply, what: string, missing: string): void {
  if (reply.status === 200) return;
  if (lacksRoute(reply)) throw unavailable(`${what}: the engine has no such route; ${missing}`);
  throw failureOf(reply, what);
}

/** Whether the server lacks the route or has switched it off. A missing model or file does not count. */
export function lacksRoute(reply: HttpReply): boolean {
  if (reply.status === 403 || reply.status === 405 || reply.status === 501) return true;
  return reply.status === 404 && explanationOf(reply) === 'Not Found';
}

async function reached<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw asUnavailable(error);
  }
}

async function* reachedChunks(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    throw asUnavailable(error);
  }
}

function asUnavailable(error: unknown): unknown {
  if (!(error instanceof HttpUnreachable)) return error;
  const advice = error instanceof HttpTimeout ? 'see the engine’s log' : 'start the engine, or correct its address';
  return unavailable(`engine: ${error.message}; ${advice}`, { cause: error });
}
