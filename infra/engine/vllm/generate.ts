import type { VersionSpan } from '../../../workflows/contracts/trace.ts';
import { isRecord } from '../../is-record.ts';
import { checkedSpans, invalid, unavailable } from '../checks.ts';
import { type EngineConnection, failureOf, lacksRoute } from '../connection.ts';
import type { GenerateEvent, GenerateRequest } from '../engine.ts';
import { type Chunk, checkedEvents, failureIn, jsonEvents, readAs } from '../events.ts';
import { type LabelledSpans, versionSpans, type WeightsWanted } from '../labels.ts';
import { jsonWithIds } from '../prompt.ts';
import { commonSamplingParams } from '../sampling-params.ts';
import { completionChoice, generateChoice } from './wire.ts';

/** One streamed chunk of either route, in a common shape. */
interface VllmChunk extends Chunk {
  readonly spans: LabelledSpans | null | undefined;
}

/** A route that samples tokens: vLLM has two, and each has its own shapes. */
interface Route {
  readonly path: string;
  /** The member of the body that holds the prompt's ids. */
  readonly idsKey: string;
  /** Returns the body without the ids. */
  body(request: GenerateRequest, model: string): object;
  /** Reads one payload; null when it carries only usage. */
  chunk(data: unknown, where: string): VllmChunk | null;
}

/** The token route: reports ids as numbers, and version spans. Servers started without `--enable-scale-out` answer 403. */
export const generateRoute: Route = {
  path: '/inference/v1/generate',
  idsKey: 'token_ids',
  body: (request, model) => ({
    request_id: request.requestId,
    model,
    sampling_params: { ...samplingParams(request), logprobs: 0 },
    stream: true,
  }),
  chunk(data, where) {
    const choice = firstChoice(data);
    if (choice === undefined) return null;
    const {
      finish_reason: finish,
      token_ids: ids,
      logprobs,
      weight_versions: spans,
    } = readAs(generateChoice, choice, where);
    for (const [index, entry] of (logprobs?.content ?? []).entries()) {
      if (typeof entry.token_id === 'number' && entry.token_id !== ids?.[index]) {
        throw invalid(`generate: expected the logprob of id ${ids?.[index]}, got that of id ${entry.token_id}`);
      }
    }
    return { ids, logprobs: logprobs?.content?.map((entry) => entry.logprob), finish, spans };
  },
};

/** The route that every vLLM has; reports no version spans. */
export const completionsRoute: Route = {
  path: '/v1/completions',
  idsKey: 'prompt',
  body: (request, model) => ({
    request_id: request.requestId,
    model,
    ...samplingParams(request),
    logprobs: 0,
    return_token_ids: true,
    stream: true,
  }),
  chunk(data, where) {
    const choice = firstChoice(data);
    if (choice === undefined) return null;
    const { finish_reason: finish, token_ids: ids, logprobs } = readAs(completionChoice, choice, where);
    return { ids, logprobs: logprobs?.token_logprobs, finish, spans: null };
  },
};

/** The server that a request is sent to, and how its tokens are attributed to versions. */
export interface GenerationTarget {
  readonly connection: EngineConnection;
  readonly route: Route;
  readonly model: string;
  /** Attributes all tokens to one version; returns null when the server itself must send spans. */
  attribute(tokens: number): Promise<readonly VersionSpan[] | null>;
  readonly wanted: WeightsWanted;
}

/** Thrown when the server does not have the token route, and the other one is to be tried. */
export class RouteMissing extends Error {}

export async function* generateOver(
  target: GenerationTarget,
  request: GenerateRequest,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  const { connection, route } = target;
  const where = `${connection.url}${route.path} (request ${request.requestId})`;
  const body = jsonWithIds(route.idsKey, request.prompt, route.body(request, target.model));
  const opened = await connection.stream(route.path, body, signal);
  if ('refused' in opened) {
    if (route !== completionsRoute && lacksRoute(opened.refused)) throw new RouteMissing(where);
    throw failureOf(opened.refused, where);
  }
  const chunks = chunksOf(route, opened.chunks, where);
  yield* checkedEvents(chunks, { maxTokens: request.maxTokens, where }, (last, tokens) =>
    spansOf(target, last, tokens, where),
  );
}

async function* chunksOf(route: Route, bytes: AsyncIterable<Buffer>, where: string): AsyncGenerator<VllmChunk> {
  for await (const data of jsonEvents(bytes, where)) {
    const failed = failureIn(data);
    if (failed !== null) throw unavailable(`${where}: the engine failed in mid-stream: ${failed}`);
    const chunk = route.chunk(data, where);
    if (chunk !== null) yield chunk;
  }
}

async function spansOf(
  target: GenerationTarget,
  { spans }: VllmChunk,
  tokens: number,
  where: string,
): Promise<readonly VersionSpan[]> {
  const attributed = await target.attribute(tokens);
  if (attributed !== null) return attributed;
  if (spans === null || spans === undefined) {
    throw invalid(
      `${where}: expected weight_versions on the last chunk, got none; publish as LoRA adapters to this server`,
    );
  }
  return checkedSpans(versionSpans(spans, target.wanted, target.connection.url), tokens, where);
}

/** Returns the first choice; undefined for a last payload that carries only usage. */
function firstChoice(data: unknown): unknown {
  const choices = isRecord(data) ? data.choices : undefined;
  return Array.isArray(choices) ? choices[0] : undefined;
}

function samplingParams(request: GenerateRequest) {
  return {
    max_tokens: request.maxTokens,
    ...commonSamplingParams(request),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
  };
}
