import { randomUUID } from 'node:crypto';
import type { Hono } from 'hono';
import { createModelRequest, decodeRequest, modelRequest, optimStepRequest } from '../../../tinker-wire/index.ts';
import type { FutureResult } from './futures.ts';
import {
  failWith,
  readBody,
  readProtobuf,
  refuseOthers,
  submit,
  submitForModel,
  TinkerError,
  type TinkerState,
} from './state.ts';
import { checkLoss } from './training.ts';

export function addTrainingRoutes(app: Hono, state: TinkerState): void {
  const { training, modelName, sessions, models } = state;
  app.post('/create_model', async (c) => {
    const body = await readBody(c, createModelRequest);
    if (!sessions.isOpen(body.session_id)) throw new TinkerError(404, 'Session not found');
    if (body.base_model !== modelName)
      throw new TinkerError(400, `base_model: expected ${modelName}, got ${body.base_model}`);
    refuseOthers('optimizer_config.type', 'adamw', body.optimizer_config?.type);
    const modelId = `model_${randomUUID().replaceAll('-', '').slice(0, 12)}`;
    const key = { scope: modelId, sequence: null, kind: 'create_model', payload: body };
    const requestId = submit(state, key, () => training.create(modelId, body));
    // The model is known at once, since the client may use the model before it has read the result.
    models.set(modelId, { session: body.session_id, requests: 0 });
    return c.json({ model_id: modelId, base_model: modelName, status: 'created', request_id: requestId });
  });
  app.post('/forward_backward', async (c) => {
    const bytes = await readProtobuf(c);
    const request = failWith(422, 'Invalid proto forward_backward body', () => decodeRequest(bytes));
    failWith(422, 'forward_backward', () => checkLoss(request));
    const { modelId: scope, sequence } = request;
    const key = { scope, sequence, kind: request.forwardOnly ? 'forward' : 'forward_backward', payload: bytes };
    return submitForModel(c, state, key, () => training.forwardBackward(request));
  });
  app.post('/optim_step', async (c) => {
    const {
      model_id: scope,
      seq_id: sequence,
      adam_params: adam,
      optimizer_params,
    } = await readBody(c, optimStepRequest);
    refuseOthers('optimizer_params.type', 'adamw', optimizer_params?.type);
    if (!adam) throw new TinkerError(422, 'adam_params: expected the settings of AdamW, got none');
    const key = { scope, sequence, kind: 'optim_step', payload: adam };
    return submitForModel(c, state, key, () => training.optimStep(scope, sequence ?? null, adam));
  });
  app.post('/unload_model', async (c) => {
    const { model_id } = await readBody(c, modelRequest);
    const key = { scope: model_id, sequence: null, kind: 'unload_model', payload: null };
    return submitForModel(c, state, key, () => unload(state, model_id));
  });
  app.post('/get_info', async (c) => {
    const { model_id } = await readBody(c, modelRequest);
    if (!models.has(model_id)) throw new TinkerError(404, 'Model not found');
    const data = { model_name: modelName, arch: modelName, tokenizer_id: modelName };
    return c.json({ type: 'get_info', model_id, status: 'created', model_data: data, model_name: modelName });
  });
}

/** Unloads a model. Its requests are forgotten, since it takes no more of them. */
export function unload({ models, futures, training }: TinkerState, modelId: string): Promise<FutureResult> {
  models.delete(modelId);
  futures.forget(modelId);
  return training.unload(modelId);
}
