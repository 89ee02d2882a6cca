import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf, type HttpReply, HttpUnreachable, httpCall, isRecord, jsonOf } from '../../http/client.ts';
import { ContextOverflow } from '../refusal.ts';
import { readReply, requestBody, type UpstreamCall, type UpstreamReply } from './chat-wire.ts';
import type { UpstreamModel } from './upstreams.ts';

/** The reply comes as a whole: a long one of a model that thinks takes minutes. */
const answerMs = 900_000;
const firstWaitMs = 500;
const longestWaitMs = 30_000;

/**
 * Asks an upstream model once for a reply, as a whole. One that is away, busy or over its rate is asked again until
 * `holdMs` have passed since it last worked on the call. Throws TemperFailure EngineUnavailable or EngineInvalid, or a
 * ContextOverflow. `onAway` is called whenever the model was away.
 */
export async function askUpstream(
  upstream: UpstreamModel,
  call: UpstreamCall,
  key: string,
  holdMs: number,
  onAway: () => void,
  signal: AbortSignal,
): Promise<UpstreamReply> {
  const body = Buffer.from(JSON.stringify(requestBody(upstream, call)));
  const startedAt = Date.now();
  for (let attempt = 0; ; attempt += 1) {
    const answer = await post(upstream, body, signal);
    if (!('away' in answer)) return readReply(upstream, read(upstream, answer), key);
    onAway();
    const waitMs = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs);
    if (Date.now() - startedAt + waitMs > holdMs) throw away(upstream, attempt + 1, answer.away);
    await sleep(waitMs, undefined, { signal });
  }
}

type Answer = HttpReply | { readonly away: string };

async function post({ url, apiKey }: UpstreamModel, body: Buffer, signal: AbortSignal): Promise<Answer> {
  const headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
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
    return isAway(reply) ? { away: wordsOf(apiKey, reply) } : reply;
  } catch (error) {
    if (error instanceof HttpUnreachable) return { away: error.message };
    throw error;
  }
}

/** Too many requests, and whatever a server or what stands before it says of itself: it passes. 408, 409, 425: ask again. */
function isAway({ status }: HttpReply): boolean {
  return status >= 500 || [408, 409, 425, 429].includes(status);
}

function read(upstream: UpstreamModel, reply: HttpReply): unknown {
  if (reply.status === 200) return jsonOf(reply);
  const words = wordsOf(upstream.apiKey, reply);
  if (isOverflow(reply)) throw overflowOf(explanationOf(reply), upstream.contextLength ?? 0);
  throw new TemperFailure(
    'EngineInvalid',
    `upstream ${upstream.name}: expected 200 from ${upstream.url}, got ${words}; look at its url, model and key in upstreams.json`,
  );
}

/** By OpenAI's code, or by words that servers have for it. */
function isOverflow(reply: HttpReply): boolean {
  if (reply.status !== 400 && reply.status !== 413 && reply.status !== 422) return false;
  const body = jsonOf(reply);
  const code = isRecord(body) && isRecord(body.error) ? body.error.code : undefined;
  return (
    code === 'context_length_exceeded' || /context (length|window|size)|prompt is too long/i.test(explanationOf(reply))
  );
}

/** Servers name their limit first, then what came, if they name anything. */
function overflowOf(words: string, known: number): ContextOverflow {
  const [limit = known, asked] = (words.match(/\d{3,}/g) ?? []).map(Number);
  return new ContextOverflow(Math.max(asked ?? 0, limit + 1), limit);
}

/** What the server said, without the secret that some quote. */
function wordsOf(apiKey: string | null, reply: HttpReply): string {
  const said = `${reply.status}: ${explanationOf(reply)}`;
  return apiKey === null ? said : said.replaceAll(apiKey, '…');
}

function away({ name, url }: UpstreamModel, attempts: number, words: string): TemperFailure {
  const what = `upstream ${name}: expected an answer from ${url}, got none in ${attempts} attempts, at last ${words}`;
  return new TemperFailure('EngineUnavailable', `${what}; look at the server, or wait and resume`);
}
