import { randomUUID } from 'node:crypto';
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
import type { Samplers } from './samplers.ts';
import { readBody, submit, TinkerError, type TinkerState } from './state.ts';

type SampleBody = z.output<typeof sampleRequest>;

export function addSamplingRoutes(app: Hono, state: TinkerState): void {
  const { samplers, samplingSessions, baseWeights } = state;
  app.post('/create_sampling_session', async (c) => {
    const { model_path, base_model } = await readBody(c, createSamplingSessionRequest);
    const session = `sampling_${randomUUID().slice(0, 8)}`;
    samplingSessions.set(session, directoryOf(state, model_path, base_model));
    return c.json({ type: 'create_sampling_session', sampling_session_id: session });
  });
  app.post('/asample', async (c) => {
    const body = await readBody(c, sampleRequest);
    const session = body.sampling_session_id;
    const directory =
      typeof session === 'string'
        ? samplingSessions.get(session)
        : directoryOf(state, body.model_path, body.base_model);
    if (directory === undefined) throw new TinkerError(404, 'Sampling session not found');
    const key = { scope: session ?? 'samples', sequence: session ? body.seq_id : null, kind: 'sample', payload: body };
    const requestId = submit(state, key, () =>
      toResult('', async () => sample(samplers, directory ?? (await baseWeights()), body)),
    );
    return c.json({ future_id: requestId, request_id: requestId, status: 'pending' });
  });
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
  samplers: Samplers,
  directory: string,
  { prompt, num_samples, sampling_params: params, prompt_logprobs }: SampleBody,
): Promise<FutureResult> {
  const tokenIds = prompt.chunks.flatMap((chunk) => chunk.tokens);
  const stopTokenIds = stopIds(params.stop);
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
  const promptLogprobs = sequences[0]?.promptLogprobs;
  return bytesResult(encodeSample({ sequences, ...(promptLogprobs ? { promptLogprobs } : {}) }));
}

function stopIds(stop: SampleBody['sampling_params']['stop']): readonly number[] {
  const given: readonly (number | string)[] = typeof stop === 'string' ? [stop] : (stop ?? []);
  const ids = given.filter((one) => typeof one === 'number');
  if (ids.length === given.length) return ids;
  throw refuse('invalid-request', 'sampling_params.stop', 'token ids (this server has no tokenizer)', given);
}
