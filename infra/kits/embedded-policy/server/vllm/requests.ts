import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { SampleRequest } from '../../sampler-core.ts';

// The bodies of the two generation routes, read into one shape.

/** Accepts only the value that switches a parameter off: this server would otherwise return another result than vLLM. */
const off = <T extends number>(value: T) =>
  z
    .literal(value, { error: `expected ${value}: this server does not support it` })
    .nullish()
    .transform(() => undefined);

const sampling = {
  max_tokens: z.number().int().min(1).nullish(),
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.number().int().nullish(),
  stop_token_ids: z.array(z.number().int()).nullish(),
  seed: z.number().int().nullish(),
  logprobs: z.number().int().min(0).nullish(),
  prompt_logprobs: z.number().int().min(0).nullish(),
  n: off(1),
  min_p: off(0),
  repetition_penalty: off(1),
  presence_penalty: off(0),
  frequency_penalty: off(0),
};
const samplingParams = z.object(sampling);
const tokens = z.array(z.number().int().min(0)).min(1);

const common = {
  request_id: z.string().min(1).max(200).nullish(),
  model: z.string().nullish(),
  stream: z.boolean().nullish(),
};

export const generateBody = z
  .object({ ...common, token_ids: tokens, sampling_params: samplingParams })
  .transform(({ token_ids, sampling_params, ...rest }) => ({
    ...rest,
    tokenIds: token_ids,
    sampling: sampling_params,
  }));

export const completionBody = z
  .object({ ...common, ...sampling, prompt: tokens, return_token_ids: z.boolean().nullish() })
  .transform(({ request_id, model, stream, prompt, return_token_ids: _, ...params }) => ({
    request_id,
    model,
    stream,
    tokenIds: prompt,
    sampling: params,
  }));

export type GenerationBody = z.output<typeof generateBody>;

/**
 * Builds the sampler's request. Its id is made unique, since a client may retry before its first connection is known to be
 * closed.
 */
export function toSampleRequest(body: GenerationBody, prefix: string, contextLength: number): SampleRequest {
  const { sampling: params, tokenIds } = body;
  return {
    requestId: `${prefix}${body.request_id ?? randomUUID()}#${randomUUID()}`,
    tokenIds,
    maxTokens: params.max_tokens ?? Math.max(1, contextLength - tokenIds.length),
    temperature: params.temperature ?? 1,
    topP: params.top_p ?? 1,
    topK: params.top_k ?? -1,
    stopTokenIds: params.stop_token_ids ?? [],
    ...(typeof params.seed === 'number' ? { seed: params.seed } : {}),
    promptLogprobs: typeof params.prompt_logprobs === 'number',
  };
}

/** Returns the id that callers know. */
export function externalId(requestId: string): string {
  return requestId.replace(/#[0-9a-f-]{36}$/, '');
}
