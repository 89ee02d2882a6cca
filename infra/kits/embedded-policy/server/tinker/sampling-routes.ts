import { existsSync } from 'node:fs';
import type { Hono } from 'hono';
import type { z } from 'zod';
import {
  createSamplingSessionRequest,
  encodeSample,
  parseTinkerPath,
  sampleRequest,
} from '../../../tinker-wire/index.ts';
import { refuse } from '../../errors.ts';
import type { FutureResult } from './futures.ts';
import { bytesResult, toResult } from './results.ts';
import { readBody, refuseOthers, submit, TinkerError, type TinkerState } from './state.ts';

type SampleBody = z.output<typeof sampleRequest>;

export function addSamplingRoutes(app: Hono, state: TinkerState): void {
  const { sessions, baseWeights } = state;
  app.post('/create_sampling_session', async (c) => {
    const { session_id, model_path, base_model } = await readBody(c, createSamplingSessionRequest);
    const directory = directoryOf(state, model_path, base_model);
    const id = sessions.openSampling({ session: session_id, directory, path: model_path ?? null });
    return c.json({ type: 'create_sampling_session', sampling_session_id: id });
  });
  app.get('/samplers/:session', (c) => {
    const id = c.req.param('session');
    const session = sessions.sampling(id);
    if (session === undefined) throw new TinkerError(404, 'Sampling session not found');
    return c.json({ sampler_id: id, base_model: state.modelName, model_path: session.path });
  });
  app.post('/asample', async (c) => {
    const body = await readBody(c, sampleRequest);
    refuseUnsupported(body);
    const session = body.sampling_session_id;
    const directory =
      typeof session === 'string'
        ? sessions.sampling(session)?.directory
        : directoryOf(state, body.model_path, body.base_model);
    if (directory === undefined) throw new TinkerError(404, 'Sampling session not found');
    const sequence = session ? body.seq_id : null;
    const key = { scope: session ?? 'samples', sequence, kind: 'sample', payload: body, repeatable: true } as const;
    const requestId = submit(state, key, () =>
      toResult('', async () => sample(state, directory ?? (await baseWeights()), body)),
    );
    // SDKs since 0.26 require the ids of the sequences in the promise. A repeated request has the same ids.
    const sequenceIds = Array.from({ length: body.num_samples }, (_, index) => `${requestId}_${index}`);
    const promise = { future_id: requestId, request_id: requestId, status: 'pending' };
    return c.json({ ...promise, sample_sequence_ids: sequenceIds });
  });
}

/** Refuses what would be missing in the reply, or silently different. */
function refuseUnsupported(body: SampleBody): void {
  refuseOthers('topk_prompt_logprobs', 0, body.topk_prompt_logprobs);
  refuseOthers('topk_sample_logprobs', 0, body.topk_sample_logprobs);
  refuseOthers('prompt_alt_tokens_k', 0, body.prompt_alt_tokens_k);
  refuseOthers('record_stability_info', false, body.record_stability_info);
  if (body.target_prompt_logprobs !== undefined && body.target_prompt_logprobs !== null) {
    throw new TinkerError(400, 'target_prompt_logprobs: this server reports the logprobs of the prompt itself only');
  }
}

/** Returns the directory of a checkpoint; null for the base model. */
function directoryOf(
  { directories, modelName }: TinkerState,
  path: string | null | undefined,
  base: string | null | undefined,
): string | null {
  if (typeof path !== 'string') {
    if (base === modelName) return null;
    throw new TinkerError(400, `base_model: expected ${modelName}, got ${base ?? 'none'}`);
  }
  const address = parseTinkerPath(path);
  if (address === null) {
    throw new TinkerError(400, `model_path: expected tinker://<model>/sampler_weights/<name>, got ${path}`);
  }
  const directory = directories.checkpoint(address);
  if (!existsSync(directory)) throw new TinkerError(404, `Checkpoint not found: ${address.modelId}/${address.name}`);
  return directory;
}

/** Runs an asample request on the weights of a directory. */
async function sample(
  { samplers, endTokenIds }: TinkerState,
  directory: string,
  { prompt, num_samples, sampling_params: params, prompt_logprobs, prompt_logprobs_last_n: scored }: SampleBody,
): Promise<FutureResult> {
  const tokenIds = prompt.chunks.flatMap((chunk) => chunk.tokens);
  const stopTokenIds = params.stop ? stopIds(params.stop) : endTokenIds;
  const requests = Array.from({ length: num_samples }, (_, index) => ({
    tokenIds,
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    topP: params.top_p,
    topK: params.top_k,
    stopTokenIds,
    // Each sample of a seeded request draws its own random numbers.
    ...(typeof params.seed === 'number' ? { seed: params.seed + index } : {}),
    promptLogprobs: prompt_logprobs === true && index === 0,
  }));
  const sequences = await samplers.sample(directory, requests);
  const all = sequences[0]?.promptLogprobs;
  const firstScored = typeof scored === 'number' ? tokenIds.length - scored : 0;
  const promptLogprobs = all?.map((logprob, index) => (index < firstScored ? null : logprob));
  return bytesResult(encodeSample({ sequences, ...(promptLogprobs ? { promptLogprobs } : {}) }));
}

function stopIds(stop: NonNullable<SampleBody['sampling_params']['stop']>): readonly number[] {
  const given: readonly (number | string)[] = typeof stop === 'string' ? [stop] : stop;
  const ids = given.filter((one) => typeof one === 'number');
  if (ids.length === given.length) return ids;
  throw refuse('invalid-request', 'sampling_params.stop', 'token ids (this server has no tokenizer)', given);
}
