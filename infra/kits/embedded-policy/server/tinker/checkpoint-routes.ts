import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Context, Hono } from 'hono';
import {
  loadWeightsRequest,
  parseTinkerPath,
  saveForSamplerRequest,
  saveWeightsRequest,
} from '../../../tinker-wire/index.ts';
import type { CheckpointAddress } from '../directories.ts';
import type { FutureKey } from './futures.ts';
import { readBody, submitForModel, TinkerError, type TinkerState } from './state.ts';

export function addCheckpointRoutes(app: Hono, state: TinkerState): void {
  const { training, directories, models, samplingSessions } = state;
  app.post('/save_weights', async (c) => {
    const body = await readBody(c, saveWeightsRequest);
    const address = { modelId: body.model_id, kind: 'weights', name: body.path } as const;
    const key = { scope: body.model_id, sequence: body.seq_id, kind: 'save_weights', payload: body.path };
    const path = `tinker://${address.modelId}/weights/${address.name}`;
    return saveOnce(c, state, { key, address, reply: { type: 'save_weights', path } });
  });
  app.post('/save_weights_for_sampler', async (c) => {
    const body = await readBody(c, saveForSamplerRequest);
    const { model_id, path: given, seq_id, sampling_session_seq_id } = body;
    const name = given ?? `ss${sampling_session_seq_id}_seq${seq_id}`;
    const address = { modelId: model_id, kind: 'sampler_weights', name } as const;
    const key = { scope: model_id, sequence: seq_id, kind: 'save_weights_for_sampler', payload: name };
    const path = given === null || given === undefined ? null : `tinker://${model_id}/sampler_weights/${name}`;
    const session = path === null ? `sampling_${randomUUID().slice(0, 8)}` : null;
    if (session !== null) samplingSessions.set(session, directories.checkpoint(address));
    const reply = { type: 'save_weights_for_sampler', path, sampling_session_id: session };
    return saveOnce(c, state, { key, address, reply });
  });
  app.post('/load_weights', async (c) => {
    const body = await readBody(c, loadWeightsRequest);
    const { model_id: scope, seq_id: sequence } = body;
    const key = { scope, sequence, kind: 'load_weights', payload: { path: body.path, optimizer: body.optimizer } };
    const address = parseTinkerPath(body.path);
    if (address === null || address.kind !== 'weights') {
      throw new TinkerError(400, `path: expected tinker://<model>/weights/<name>, got ${body.path}`);
    }
    const isNew = state.futures.earlier(key) === undefined;
    if (isNew && (models.get(scope)?.requests ?? 0) > 0) {
      throw new TinkerError(
        400,
        `LoadWeights is not permitted with seq_id ${sequence}: it must be a model's first request`,
      );
    }
    const directory = directories.checkpoint(address);
    if (!existsSync(directory)) throw new TinkerError(404, `Checkpoint not found: ${address.modelId}/${address.name}`);
    return submitForModel(c, state, key, () => training.load(body, directory));
  });
}

interface SaveRequest {
  readonly key: FutureKey;
  readonly address: CheckpointAddress;
  /** The result of the request's future. */
  readonly reply: unknown;
}

/** Saves under a name that is not in use. A repeated request gets the same future. */
function saveOnce(c: Context, state: TinkerState, { key, address, reply }: SaveRequest) {
  const { directories, saving, training, futures } = state;
  const path = directories.checkpoint(address);
  if (futures.earlier(key) === undefined && (existsSync(path) || saving.has(path))) {
    throw new TinkerError(409, `Checkpoint '${address.name}' already exists for model '${address.modelId}'`);
  }
  return submitForModel(c, state, key, async () => {
    saving.add(path);
    try {
      return await training.save(address, key.sequence ?? null, reply);
    } finally {
      saving.delete(path);
    }
  });
}
