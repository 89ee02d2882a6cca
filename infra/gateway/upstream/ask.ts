import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf, type HttpReply, HttpUnreachable, httpCall, jsonOf } from '../../http/client.ts';
import { isRecord } from '../../is-record.ts';
import { ContextOverflow } from '../gateway-error.ts';
import { readReply, requestBody, type UpstreamCall, type UpstreamReply } from './chat-wire.ts';
import type { UpstreamModel } from './upstreams.ts';

/** The headers by which a server tells sessions apart, and a repeated request from a new one. */
export const sessionHeader = 'x-temper-session';
export const turnHeader = 'idempotency-key';

/** The time limit of a reply, which arrives as a whole; a long one of a reasoning model takes minutes. */
const answerMs = 900_000;
const firstWaitMs = 500;
const longestWaitMs = 30_000;

export interface UpstreamRequest {
  readonly upstream: UpstreamModel;
  readonly call: UpstreamCall;
  /** The id of the session, for servers that answer each session by itself. */
  readonly session: string;
  /** The turn's key, which names calls that have no id. */
  readonly key: string;
  readonly graceMs: number;
  /** Called each time the model is away. */
  readonly onUnavailable: () => void;
}

/**
 * Requests one reply from an upstream model, as a whole. A model that is away, busy or over its rate limit is retried until
 * `graceMs` have passed. Throws TemperFailure EngineUnavailable or EngineInvalid, or a ContextOverflow.
 */
export async function askUpstream(
  { upstream, call, session, key, graceMs, onUnavailable }: UpstreamRequest,
  signal: AbortSignal,
): Promise<UpstreamReply> {
  const body = Buffer.from(JSON.stringify(requestBody(upstream, call)));
  const headers = {
    ...(upstream.apiKey !== null && { authorization: `Bearer ${upstream.apiKey}` }),
    ...(upstream.namesSession && { [sessionHeader]: session, [turnHeader]: key }),
  };
  const startedAt = performance.now();
  for (let attempt = 0; ; attempt += 1) {
    const answer = await post(upstream, { headers, body }, signal);
    if (!('away' in answer)) return readReply(upstream, read(upstream, answer), key);
    onUnavailable();
    const waitMs = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs);
    if (performance.now() - startedAt + waitMs > graceMs) throw unavailable(upstream, attempt + 1, answer.away);
    await sleep(waitMs, undefined, { signal });
  }
}

type Answer = HttpReply | { readonly away: string };

interface Asked {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

async function post({ url, apiKey }: UpstreamModel, { headers, body }: Asked, signal: AbortSignal): Promise<Answer> {
  try {
    const reply = await httpCall(
      {
        method: 'POST',
        url: `${url.replace(/\/+$/, '')}/chat/completions`,
        headers,
        jsonParts: [body],
        timeoutMs: answerMs,
      },
      signal,
    );
    return isUnavailable(reply) ? { away: explanationWithoutKey(apiKey, reply) } : reply;
  } catch (error) {
    if (error instanceof HttpUnreachable) return { away: error.message };
    throw error;
  }
}

/** Whether a later retry may succeed: a failure of the server or a proxy, too many requests, or 408, 409 and 425. */
function isUnavailable({ status }: HttpReply): boolean {
  return status >= 500 || [408, 409, 425, 429].includes(status);
}

function read(upstream: UpstreamModel, reply: HttpReply): unknown {
  if (reply.status === 200) return jsonOf(reply);
  const words = explanationWithoutKey(upstream.apiKey, reply);
  if (isOverflow(reply)) throw overflowOf(explanationOf(reply), upstream.contextLength ?? 0);
  throw new TemperFailure(
    'EngineInvalid',
    `upstream ${upstream.name}: expected 200 from ${upstream.url}, got ${words}; check its url, model and key in upstreams.json`,
  );
}

/** Recognizes an overflow by OpenAI's error code, or by the phrases that other servers use. */
function isOverflow(reply: HttpReply): boolean {
  if (reply.status !== 400 && reply.status !== 413 && reply.status !== 422) return false;
  const body = jsonOf(reply);
  const code = isRecord(body) && isRecord(body.error) ? body.error.code : undefined;
  return (
    code === 'context_length_exceeded' || /context (length|window|size)|prompt is too long/i.test(explanationOf(reply))
  );
}

/** Reads the two numbers from an error: servers name their limit first and the prompt's length second, if at all. */
function overflowOf(words: string, known: number): ContextOverflow {
  const [limit = known, asked] = (words.match(/\d{3,}/g) ?? []).map(Number);
  return new ContextOverflow(Math.max(asked ?? 0, limit + 1), limit);
}

/** The server's explanation, without the API key, which some servers quote. */
function explanationWithoutKey(apiKey: string | null, reply: HttpReply): string {
  const explanation = `${reply.status}: ${explanationOf(reply)}`;
  return apiKey === null ? explanation : explanation.replaceAll(apiKey, '…');
}

function unavailable({ name, url }: UpstreamModel, attempts: number, words: string): TemperFailure {
  const what = `upstream ${name}: no usable answer from ${url} in ${attempts} attempts, the last one: ${words}`;
  return new TemperFailure('EngineUnavailable', `${what}; check the server, or wait and resume`);
}
