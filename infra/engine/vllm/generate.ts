import type { FinishReason, VersionSpan } from '../../../workflows/contracts/trace.ts';
import { isRecord } from '../../http/client.ts';
import type { GenerateEvent, GenerateRequest } from '../engine.ts';
import { checkedLogprobs, checkedSpans, finishReasonOf, invalid, unavailable } from './checks.ts';
import { type EngineConnection, lacksRoute, refusal } from './connection.ts';
import { versionOfLabel } from './labels.ts';
import { publishedOr } from './served.ts';
import { serverSentData } from './sse.ts';
import { completionChoice, generateChoice, streamError } from './wire.ts';

/** One streamed piece of either route, in one shape. */
interface Piece {
  readonly ids: readonly number[];
  readonly logprobs: readonly (number | null | undefined)[] | null | undefined;
  readonly finish: string | null | undefined;
  readonly spans:
    | readonly { readonly version: string; readonly start: number; readonly end: number }[]
    | null
    | undefined;
}

/** A way to ask for tokens: vLLM has two routes, and each has its own shapes. */
interface Route {
  readonly path: string;
  body(request: GenerateRequest, model: string): unknown;
  piece(data: unknown): Piece | null;
}

/** Token-in/token-out; carries ids as numbers and version spans. Servers started without `--enable-scale-out` answer 403. */
export const generateRoute: Route = {
  path: '/inference/v1/generate',
  body: (request, model) => ({
    request_id: request.requestId,
    model,
    token_ids: request.tokenIds,
    sampling_params: { ...samplingParams(request), logprobs: 0 },
    stream: true,
  }),
  piece(data) {
    const choice = firstChoice(data);
    if (choice === undefined) return null;
    const { finish_reason: finish, token_ids: ids, logprobs, weight_versions: spans } = generateChoice.parse(choice);
    for (const [index, entry] of (logprobs?.content ?? []).entries()) {
      if (typeof entry.token_id === 'number' && entry.token_id !== ids?.[index]) {
        throw invalid(`generate: expected the logprob of id ${ids?.[index]}, got that of id ${entry.token_id}`);
      }
    }
    return { ids: ids ?? [], logprobs: logprobs?.content?.map((entry) => entry.logprob), finish, spans };
  },
};

/** On every vLLM; has no version spans. */
export const completionsRoute: Route = {
  path: '/v1/completions',
  body: (request, model) => ({
    request_id: request.requestId,
    model,
    prompt: request.tokenIds,
    ...samplingParams(request),
    logprobs: 0,
    return_token_ids: true,
    stream: true,
  }),
  piece(data) {
    const choice = firstChoice(data);
    if (choice === undefined) return null;
    const { finish_reason: finish, token_ids: ids, logprobs } = completionChoice.parse(choice);
    return { ids: ids ?? [], logprobs: logprobs?.token_logprobs, finish, spans: null };
  },
};

/** What one generation needs to know besides its request. */
export interface GenerationTarget {
  readonly connection: EngineConnection;
  readonly route: Route;
  readonly model: string;
  /** Attributes all tokens to one version; null: by the spans, which the server must then send. */
  attribute(tokens: number, signal: AbortSignal): Promise<readonly VersionSpan[] | null>;
  /** Version of weights that nobody published; null: they are refused. */
  readonly baseVersion: number | null;
}

/** The route does not exist at this server. */
export class RouteMissing extends Error {}

export async function* generateOver(
  target: GenerationTarget,
  request: GenerateRequest,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  const { connection, route } = target;
  const where = `${connection.url}${route.path} (request ${request.requestId})`;
  const opened = await connection.stream(route.path, route.body(request, target.model), signal);
  if ('refused' in opened) {
    if (lacksRoute(opened.refused)) throw new RouteMissing(where);
    throw refusal(opened.refused, where);
  }
  let tokens = 0;
  for await (const data of serverSentData(opened.chunks)) {
    const piece = pieceOf(route, data, where);
    if (piece === null) continue;
    const logprobs = checkedLogprobs(piece.ids, piece.ids.length === 0 ? [] : piece.logprobs, where);
    tokens += piece.ids.length;
    if (tokens > request.maxTokens) throw invalid(`${where}: expected at most ${request.maxTokens} tokens, got more`);
    if (piece.finish === null || piece.finish === undefined) {
      if (piece.ids.length > 0) yield { tokenIds: piece.ids, logprobs };
      continue;
    }
    const finishReason: FinishReason = finishReasonOf(piece.finish, where);
    const versions = await spansOf(target, piece, tokens, where, signal);
    yield { tokenIds: piece.ids, logprobs, finishReason, versions };
    return;
  }
  throw unavailable(`${where}: expected a finish_reason, got the end of the stream after ${tokens} tokens; try again`);
}

async function spansOf(
  target: GenerationTarget,
  piece: Piece,
  tokens: number,
  where: string,
  signal: AbortSignal,
): Promise<readonly VersionSpan[]> {
  if (tokens === 0) return [];
  const attributed = await target.attribute(tokens, signal);
  if (attributed !== null) return attributed;
  if (piece.spans === null || piece.spans === undefined) {
    throw invalid(
      `${where}: expected weight_versions on the last chunk, got none; publish as LoRA adapters to this server`,
    );
  }
  const spans = piece.spans.map(({ version, start, end }) => ({
    version: versionOfLabel(version) ?? publishedOr(target.baseVersion, target.connection.url),
    start,
    end,
  }));
  return checkedSpans(spans, tokens, where);
}

function pieceOf(route: Route, data: string, where: string): Piece | null {
  const parsed = parseData(data, where);
  const failed = streamError.safeParse(parsed);
  if (failed.success) {
    const { error } = failed.data;
    throw unavailable(
      `${where}: the engine failed in mid-stream: ${typeof error === 'string' ? error : error.message}`,
    );
  }
  try {
    return route.piece(parsed);
  } catch (error) {
    if (isRecord(error) && error.name === 'ZodError')
      throw invalid(`${where}: unreadable chunk: ${error.message}`, { cause: error });
    throw error;
  }
}

function parseData(data: string, where: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw invalid(`${where}: expected JSON in the stream, got "${data.slice(0, 200)}"`, { cause });
  }
}

/** The last chunk may carry usage only. */
function firstChoice(data: unknown): unknown {
  const choices = isRecord(data) ? data.choices : undefined;
  return Array.isArray(choices) ? choices[0] : undefined;
}

/** Every parameter is sent: what is left out would come from the model's generation_config.json. */
function samplingParams(request: GenerateRequest) {
  return {
    max_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    top_k: request.topK,
    min_p: 0,
    repetition_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    stop_token_ids: request.stopTokenIds,
    skip_special_tokens: false,
    ...(request.seed === undefined ? {} : { seed: request.seed }),
  };
}
