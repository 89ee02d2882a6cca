import { z } from 'zod';
import { labelledSpans } from '../labels.ts';

// vLLM's replies, as far as temper reads them. Unknown keys are ignored.

const tokenIds = z.array(z.number().int().min(0));

/** A choice of `/inference/v1/generate`, in a whole reply or in one streamed chunk. */
export const generateChoice = z.object({
  finish_reason: z.string().nullish(),
  token_ids: tokenIds.nullish(),
  logprobs: z
    .object({
      content: z.array(z.object({ logprob: z.number().nullish(), token_id: z.number().int().nullish() })).nullish(),
    })
    .nullish(),
  weight_versions: labelledSpans.nullish(),
});

/** A choice of `/v1/completions` with `return_token_ids`. */
export const completionChoice = z.object({
  finish_reason: z.string().nullish(),
  token_ids: tokenIds.nullish(),
  logprobs: z.object({ token_logprobs: z.array(z.number().nullish()).nullish() }).nullish(),
});

export const weightInfo = z.object({ weight_version: z.string() });
