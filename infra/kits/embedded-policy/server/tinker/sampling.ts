import type { z } from 'zod';
import { encodeSample, type sampleRequest } from '../../../tinker-wire/index.ts';
import { refuse } from '../../errors.ts';
import type { Outcome } from './futures.ts';
import { bytesOutcome } from './outcome.ts';
import type { Samplers } from './samplers.ts';

/** An asample request on the weights of a directory. */
export async function sampleFor(
  samplers: Samplers,
  directory: string,
  { prompt, num_samples, sampling_params: params, prompt_logprobs }: z.output<typeof sampleRequest>,
): Promise<Outcome> {
  const tokenIds = prompt.chunks.flatMap((chunk) => chunk.tokens);
  const stopTokenIds = stopIds(params.stop);
  const requests = Array.from({ length: num_samples }, (_, index) => ({
    tokenIds,
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    topP: params.top_p,
    topK: params.top_k,
    stopTokenIds,
    // Each sample of a seeded request draws on its own.
    ...(typeof params.seed === 'number' ? { seed: params.seed + index } : {}),
    promptLogprobs: prompt_logprobs === true && index === 0,
  }));
  const sequences = await samplers.sample(directory, requests);
  const promptLogprobs = sequences[0]?.promptLogprobs;
  return bytesOutcome(encodeSample({ sequences, ...(promptLogprobs ? { promptLogprobs } : {}) }));
}

function stopIds(stop: z.output<typeof sampleRequest>['sampling_params']['stop']): readonly number[] {
  const given: readonly (number | string)[] = typeof stop === 'string' ? [stop] : (stop ?? []);
  const ids = given.filter((one) => typeof one === 'number');
  if (ids.length === given.length) return ids;
  throw refuse('invalid-request', 'sampling_params.stop', 'token ids (this server has no tokenizer)', given);
}
