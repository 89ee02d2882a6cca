import { existsSync } from 'node:fs';
import type { Context, Hono } from 'hono';
import type { z } from 'zod';
import {
  createdModelId,
  loadWeightsRequest,
  parseTinkerPath,
  saveForSamplerRequest,
  saveWeightsRequest,
} from '../../../tinker-wire/index.ts';
import { type CheckpointAddress, readModelInfo } from '../directories.ts';
import type { FutureKey } from './futures.ts';
import { readBody, refuseOthers, submit, submitForModel, TinkerError, type TinkerState } from './state.ts';

type LoadBody = z.output<typeof loadWeightsRequest>;

export function addCheckpointRoutes(app: Hono, state: TinkerState): void {
  const { training, directories, models, sessions } = state;
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
    refuseOthers('kind', 'snapshot', body.kind);
    const name = given ?? `ss${sampling_session_seq_id}_seq${seq_id}`;
    const address = { modelId: model_id, kind: 'sampler_weights', name } as const;
    const key = { scope: model_id, sequence: seq_id, kind: 'save_weights_for_sampler', payload: name };
    const path = given === null || given === undefined ? null : `tinker://${model_id}/sampler_weights/${name}`;
    const sampled = { session: models.get(model_id)?.session ?? '', directory: directories.checkpoint(address), path };
    const session = path === null ? sessions.openSampling(sampled) : null;
    const reply = { type: 'save_weights_for_sampler', path, sampling_session_id: session };
    return saveOnce(c, state, { key, address, reply });
  });
  app.post('/load_weights', async (c) => {
    const body = await readBody(c, loadWeightsRequest);
    const { model_id: scope, seq_id: sequence, path, optimizer } = body;
    if (typeof scope !== 'string') return createWithWeights(c, state, body);
    const key = { scope, sequence, kind: 'load_weights', payload: { path, optimizer } };
    const { directory } = trainedWeights(state, path);
    const isNew = state.futures.earlier(key) === undefined;
    if (isNew && (models.get(scope)?.requests ?? 0) > 0) {
      throw new TinkerError(
        400,
        `LoadWeights is not permitted with seq_id ${sequence}: it must be a model's first request`,
      );
    }
    return submitForModel(c, state, key, () =>
      training.load({ modelId: scope, sequence: sequence ?? null, path, directory, optimizer }),
    );
  });
}

/** Creates the model that a session numbers, with the weights of a checkpoint. A repeated request gets the same future. */
function createWithWeights(c: Context, state: TinkerState, body: LoadBody) {
  const { sessions, models, modelName, training } = state;
  const { session_id: session, path, optimizer } = body;
  if (typeof session !== 'string' || !sessions.isOpen(session)) throw new TinkerError(404, 'Session not found');
  if (typeof body.base_model === 'string') refuseOthers('base_model', modelName, body.base_model);
  refuseOthers('optimizer_config.type', 'adamw', body.optimizer_config?.type);
  const { directory, modelId: source } = trainedWeights(state, path);
  const modelId = createdModelId(session, body.model_seq_id ?? 0);
  // The load is the model's request 0; the client numbers its own requests from 1.
  const key = { scope: modelId, sequence: 0, kind: 'load_weights', payload: { path, optimizer } };
  if (state.futures.earlier(key) === undefined) models.set(modelId, { session, requests: 0 });
  const id = submit(state, key, () =>
    training.createFrom({ modelId, sequence: 0, path, directory, optimizer }, readModelInfo(state.directories, source)),
  );
  return c.json({ future_id: id, request_id: id, model_id: modelId, status: 'pending' });
}

/** Returns the directory and the model of a checkpoint that has an optimizer. */
function trainedWeights({ directories }: TinkerState, path: string) {
  const address = parseTinkerPath(path);
  if (address === null || address.kind !== 'weights') {
    throw new TinkerError(400, `path: expected tinker://<model>/weights/<name>, got ${path}`);
  }
  const directory = directories.checkpoint(address);
  if (!existsSync(directory)) throw new TinkerError(404, `Checkpoint not found: ${address.modelId}/${address.name}`);
  return { directory, modelId: address.modelId };
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
