import { z } from 'zod';
import { labelledSpans } from '../labels.ts';

// SGLang's replies, as far as temper reads them. Unknown keys are ignored.

/**
 * A streamed chunk of `/generate`. The logprobs are not parsed here: by default each chunk repeats those of all tokens before
 * it, and only the new ones have to be read.
 */
export const generateChunk = z.object({
  meta_info: z.object({
    finish_reason: z
      .object({
        type: z.string(),
        /** The stop token or string, or a message of the scheduler. */
        matched: z.unknown().optional(),
        message: z.string().nullish(),
        status_code: z.number().int().nullish(),
      })
      .nullish(),
    /** The number of all tokens so far, whether or not this chunk repeats them. */
    completion_tokens: z.number().int().min(0),
    output_token_logprobs: z.custom<readonly unknown[]>(Array.isArray).nullish(),
    /** Label of the weights at this chunk. */
    weight_version: z.string().nullish(),
    /** Present since 2026-08. */
    weight_versions: labelledSpans.nullish(),
  }),
});
export type MetaInfo = z.infer<typeof generateChunk>['meta_info'];

/** Tuples of logprob, id and text. JSON has no NaN: it arrives as null. */
export const tokenLogprobs = z.array(z.tuple([z.number().nullable(), z.number().int().min(0)]).rest(z.unknown()));

export const modelInfo = z.object({ weight_version: z.string().nullish() });

export const updateReply = z.object({ success: z.boolean(), message: z.string() });

/** Sizes of the server, with one internal state for each of its data-parallel ranks. */
export const serverInfo = z.object({
  max_req_input_len: z.number().int().min(1).nullish(),
  internal_states: z
    .array(
      z.object({
        memory_usage: z.object({ token_capacity: z.number().int().min(1).nullish() }).nullish(),
        effective_max_running_requests_per_dp: z.number().int().min(1).nullish(),
      }),
    )
    .nullish(),
});
