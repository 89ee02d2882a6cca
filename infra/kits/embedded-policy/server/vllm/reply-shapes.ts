import type { GenerationBody } from './requests.ts';

/** Sampled tokens, or the finish, on their way to a client. */
export interface Chunk {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly finish: {
    readonly reason: string;
    readonly stopReason: number | null;
    readonly spans: readonly Span[];
  } | null;
  readonly prompt: readonly (number | null)[] | null;
}

export interface Span {
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

/** The shape of a route's replies. */
export interface ReplyShape {
  readonly prefix: string;
  chunk(id: string, model: string, chunk: Chunk, body: GenerationBody): unknown;
  whole(id: string, model: string, chunk: Chunk, body: GenerationBody): unknown;
}

export const generateShape: ReplyShape = {
  prefix: 'generate-tokens-',
  chunk: (id, _model, chunk, body) => ({
    request_id: id,
    output_mode: 'tokens',
    choices: [generateChoice(chunk, body)],
  }),
  whole: (id, model, chunk, body) => ({
    request_id: id,
    model,
    created: seconds(),
    output_mode: 'tokens',
    usage: usageOf(chunk, body),
    prompt_logprobs: promptLogprobs(chunk, body),
    choices: [generateChoice(chunk, body)],
  }),
};

export const completionShape: ReplyShape = {
  prefix: 'cmpl-',
  chunk: (id, model, chunk, body) => ({
    id,
    object: 'text_completion',
    created: seconds(),
    model,
    choices: [completionChoice(chunk, body)],
  }),
  whole: (id, model, chunk, body) => ({
    id,
    object: 'text_completion',
    created: seconds(),
    model,
    usage: usageOf(chunk, body),
    choices: [{ ...completionChoice(chunk, body), prompt_logprobs: promptLogprobs(chunk, body) }],
  }),
};

function generateChoice({ tokenIds, logprobs, finish }: Chunk, { sampling }: GenerationBody) {
  const content = tokenIds.map((token_id, index) => ({
    token_id,
    logprob: logprobs[index],
    rank: null,
    top_logprobs: [],
  }));
  return {
    index: 0,
    finish_reason: finish?.reason ?? null,
    stop_reason: finish?.stopReason ?? null,
    token_ids: tokenIds,
    logprobs: typeof sampling.logprobs === 'number' ? { content } : null,
    ...(finish === null ? {} : { weight_versions: finish.spans }),
  };
}

function completionChoice({ tokenIds, logprobs, finish }: Chunk, { sampling }: GenerationBody) {
  const named = tokenIds.map((id) => `token_id:${id}`);
  return {
    index: 0,
    text: '',
    token_ids: tokenIds,
    logprobs: typeof sampling.logprobs === 'number' ? { tokens: named, token_logprobs: logprobs } : null,
    finish_reason: finish?.reason ?? null,
    stop_reason: finish?.stopReason ?? null,
  };
}

function promptLogprobs({ prompt }: Chunk, { tokenIds }: GenerationBody) {
  return (
    prompt?.map((logprob, index) => (logprob === null ? null : { [String(tokenIds[index])]: { logprob } })) ?? null
  );
}

function usageOf({ tokenIds }: Chunk, body: GenerationBody) {
  const prompt = body.tokenIds.length;
  return { prompt_tokens: prompt, completion_tokens: tokenIds.length, total_tokens: prompt + tokenIds.length };
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
