import type { GenerationBody } from './requests.ts';

/** One token, or the end, on its way to a client. */
export interface Piece {
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

/** How a route words its answers. */
export interface Shape {
  readonly prefix: string;
  chunk(id: string, model: string, piece: Piece, body: GenerationBody): unknown;
  whole(id: string, model: string, piece: Piece, body: GenerationBody): unknown;
}

export const generateShape: Shape = {
  prefix: 'generate-tokens-',
  chunk: (id, _model, piece, body) => ({
    request_id: id,
    output_mode: 'tokens',
    choices: [generateChoice(piece, body)],
  }),
  whole: (id, model, piece, body) => ({
    request_id: id,
    model,
    created: seconds(),
    output_mode: 'tokens',
    usage: usageOf(piece, body),
    prompt_logprobs: promptLogprobs(piece, body),
    choices: [generateChoice(piece, body)],
  }),
};

export const completionShape: Shape = {
  prefix: 'cmpl-',
  chunk: (id, model, piece, body) => ({
    id,
    object: 'text_completion',
    created: seconds(),
    model,
    choices: [completionChoice(piece, body)],
  }),
  whole: (id, model, piece, body) => ({
    id,
    object: 'text_completion',
    created: seconds(),
    model,
    usage: usageOf(piece, body),
    choices: [{ ...completionChoice(piece, body), prompt_logprobs: promptLogprobs(piece, body) }],
  }),
};

function generateChoice({ tokenIds, logprobs, finish }: Piece, { sampling }: GenerationBody) {
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

function completionChoice({ tokenIds, logprobs, finish }: Piece, { sampling }: GenerationBody) {
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

function promptLogprobs({ prompt }: Piece, { tokenIds }: GenerationBody) {
  return (
    prompt?.map((logprob, index) => (logprob === null ? null : { [String(tokenIds[index])]: { logprob } })) ?? null
  );
}

function usageOf({ tokenIds }: Piece, body: GenerationBody) {
  const prompt = body.tokenIds.length;
  return { prompt_tokens: prompt, completion_tokens: tokenIds.length, total_tokens: prompt + tokenIds.length };
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
