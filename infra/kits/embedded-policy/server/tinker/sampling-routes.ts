import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Hono } from 'hono';
import { createSamplingSessionRequest, parseTinkerPath, sampleRequest } from '../../../tinker-wire/index.ts';
import { asOutcome } from './outcome.ts';
import { sampleFor } from './sampling.ts';
import { bodyOf, Refusal, type State, submitted } from './state.ts';

export function addSamplingRoutes(app: Hono, state: State): void {
  const { samplers, samplingSessions, places, modelName, baseWeights } = state;
  const directoryOf = (path: string | null | undefined, base: string | null | undefined): string | null => {
    if (typeof path !== 'string') {
      if (base === modelName) return null;
      throw new Refusal(400, `base_model: expected ${modelName}, got ${base ?? 'none'}`);
    }
    const address = parseTinkerPath(path);
    if (address === null)
      throw new Refusal(400, `model_path: expected tinker://<model>/sampler_weights/<name>, got ${path}`);
    const directory = places.checkpoint(address);
    if (!existsSync(directory)) throw new Refusal(404, `Checkpoint not found: ${address.modelId}/${address.name}`);
    return directory;
  };
  app.post('/create_sampling_session', async (c) => {
    const { model_path, base_model } = await bodyOf(c, createSamplingSessionRequest);
    const session = `sampling_${randomUUID().slice(0, 8)}`;
    samplingSessions.set(session, directoryOf(model_path, base_model));
    return c.json({ type: 'create_sampling_session', sampling_session_id: session });
  });
  app.post('/asample', async (c) => {
    const body = await bodyOf(c, sampleRequest);
    const session = body.sampling_session_id;
    const held =
      typeof session === 'string' ? samplingSessions.get(session) : directoryOf(body.model_path, body.base_model);
    if (held === undefined) throw new Refusal(404, 'Sampling session not found');
    const key = { scope: session ?? 'samples', sequence: session ? body.seq_id : null, kind: 'sample', payload: body };
    const requestId = submitted(state, key, () =>
      asOutcome('', async () => sampleFor(samplers, held ?? (await baseWeights()), body)),
    );
    return c.json({ future_id: requestId, request_id: requestId, status: 'pending' });
  });
}
