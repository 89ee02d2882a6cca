import { randomUUID } from 'node:crypto';
import type { VersionSpan } from '../../../workflows/contracts/trace.ts';
import { checkedSpans, invalid, unavailable } from '../checks.ts';
import { type EngineConnection, engineTimeouts, failureOf } from '../connection.ts';
import type { GenerateEvent, GenerateRequest } from '../engine.ts';
import { type Chunk, checkedEvents, failureIn, jsonEvents, readAs } from '../events.ts';
import { type LabelledSpans, versionOfWeights, versionSpans, type WeightsWanted } from '../labels.ts';
import type { SelectedModel } from '../model-selection.ts';
import { jsonWithIds } from '../prompt.ts';
import { commonSamplingParams } from '../sampling-params.ts';
import { generateChunk, type MetaInfo, tokenLogprobs } from './wire.ts';

export interface GenerationTarget {
  readonly connection: EngineConnection;
  readonly model: string;
  /** The model itself, or an adapter of it, whose name determines the version. */
  readonly selected: SelectedModel;
  readonly wanted: WeightsWanted;
}

/** The new tokens of one chunk, and the weights that sampled them. */
interface SglangChunk extends Chunk {
  readonly spans: LabelledSpans | null | undefined;
  /** The labels of the weights at the first token and at this chunk. */
  readonly labels: readonly string[];
}

/** Streams `/generate`, with ids in and logprobs out. A caller that stops early aborts the request at the engine. */
export async function* generateFrom(
  target: GenerationTarget,
  request: GenerateRequest,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  const { connection } = target;
  const where = `${connection.url}/generate (request ${request.requestId})`;
  // The server aborts by prefix and refuses an id in use, so neither `turn-1` and `turn-10` nor two tries may share one.
  const rid = `${request.requestId}#${randomUUID()}`;
  let ended = false;
  try {
    const opened = await connection.stream(
      '/generate',
      jsonWithIds('input_ids', request.prompt, bodyOf(request, rid, target)),
      signal,
    );
    if ('refused' in opened) throw failureOf(opened.refused, where);
    const limits = { maxTokens: request.maxTokens, where };
    const versionsOf = async (last: SglangChunk, tokens: number) => spansOf(target, last, tokens, where);
    for await (const event of checkedEvents(chunksOf(opened.chunks, where), limits, versionsOf)) {
      ended = event.finishReason !== undefined;
      yield event;
    }
  } finally {
    if (!ended) await abort(connection, rid);
  }
}

async function* chunksOf(bytes: AsyncIterable<Buffer>, where: string): AsyncGenerator<SglangChunk> {
  let seen = 0;
  let firstLabel: string | null = null;
  for await (const data of jsonEvents(bytes, where)) {
    const failed = failureIn(data);
    // An error before the first token means that the request itself is refused.
    if (failed !== null && seen === 0) throw invalid(`${where}: the engine refused the request: ${failed}`);
    if (failed !== null) throw unavailable(`${where}: the engine failed in mid-stream: ${failed}`);
    const { meta_info: meta } = readAs(generateChunk, data, where);
    const added = readAs(tokenLogprobs, newLogprobs(meta, seen, where), where);
    seen += added.length;
    firstLabel ??= meta.weight_version ?? null;
    yield {
      ids: added.map(([, id]) => id),
      logprobs: added.map(([logprob]) => logprob),
      finish: finishOf(meta, where),
      spans: meta.weight_versions,
      labels: [firstLabel, meta.weight_version].filter((label) => typeof label === 'string'),
    };
  }
}

/**
 * Returns the logprobs that a chunk adds to the `seen` tokens before it. Servers with `--incremental-streaming-output` send
 * only these, others send all tokens so far; the count of all tokens distinguishes the two.
 */
function newLogprobs(meta: MetaInfo, seen: number, where: string): readonly unknown[] {
  const { completion_tokens: all, output_token_logprobs: sent } = meta;
  const got = sent?.length ?? 0;
  if (seen + got === all) return sent ?? [];
  if (got === all) return sent?.slice(seen) ?? [];
  throw invalid(`${where}: expected logprobs of ${all - seen} new or of all ${all} tokens, got ${sent ? got : 'none'}`);
}

/** Returns the finish reason. An abort with a status is an error: a 4xx blames the request, any other status the engine. */
function finishOf({ finish_reason: reason }: MetaInfo, where: string): string | null {
  if (reason === null || reason === undefined) return null;
  const { type, matched, message, status_code: status } = reason;
  if (matched === 'NaN happened') throw invalid(`${where}: expected finite logits, got NaN; check the weights`);
  if (type !== 'abort' || status === null || status === undefined) return type;
  const failure = `${where}: the engine aborted with status ${status}: ${message ?? 'no reason given'}`;
  throw status < 500 ? invalid(failure) : unavailable(failure);
}

function spansOf(
  { selected, connection, wanted }: GenerationTarget,
  { spans, labels }: SglangChunk,
  tokens: number,
  where: string,
): readonly VersionSpan[] {
  if (selected.version !== null) return [{ version: selected.version, start: 0, end: tokens }];
  if (spans !== null && spans !== undefined) {
    return checkedSpans(versionSpans(spans, wanted, connection.url), tokens, where);
  }
  if (labels.length === 0) {
    throw invalid(
      `${where}: expected weight_version with each chunk, got none; publish as LoRA adapters to this server`,
    );
  }
  // The weights may have changed in between: staleness must be counted from the older version.
  const version = Math.min(...labels.map((label) => versionOfWeights(label, wanted, connection.url)));
  return [{ version, start: 0, end: tokens }];
}

/** Aborts a request. SGLang notices a closed connection only seconds later, and would sample until then. */
async function abort(connection: EngineConnection, rid: string): Promise<void> {
  const body = { rid, abort_all: false };
  await connection.post('/abort_request', body, engineTimeouts.abortMs).catch(() => {});
}

/** Returns the body without the prompt. */
function bodyOf(request: GenerateRequest, rid: string, { selected, model }: GenerationTarget) {
  return {
    rid,
    ...(selected.name === model ? {} : { lora_path: selected.name }),
    stream: true,
    return_logprob: true,
    logprob_start_len: -1,
    top_logprobs_num: 0,
    return_text_in_logprobs: false,
    sampling_params: {
      max_new_tokens: request.maxTokens,
      ...commonSamplingParams(request),
      no_stop_trim: true,
      spaces_between_special_tokens: false,
      ...(request.seed === undefined ? {} : { sampling_seed: request.seed }),
    },
  };
}
