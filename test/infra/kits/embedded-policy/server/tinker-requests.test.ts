import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { encodeRequest, type WireForwardBackward } from '../../../../../infra/kits/tinker-wire/index.ts';
import type { Trainer } from '../../../../../infra/trainer/trainer.ts';
import { startTestPolicy } from './policy-server.ts';

type Policy = Awaited<ReturnType<typeof startTestPolicy>>;
const tokens = [1, 5, 9, 13, 17, 21];
const datum = { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: [1, 1, 1, 1, 1] };
const idOf = (reply: { readonly text: string }): string => JSON.parse(reply.text).request_id;

describe('tinker requests', () => {
  let policy: Policy;
  let trainer: Trainer;
  let modelId: string;
  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
  });
  after(async () => {
    trainer.close();
    await policy.close();
  });
  beforeEach(async () => {
    modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
  });
  const wire = (change: Partial<WireForwardBackward> = {}): Uint8Array =>
    encodeRequest({
      modelId,
      sequence: 1,
      loss: 'cross_entropy',
      lossConfig: {},
      forwardOnly: false,
      data: [{ tokens: datum.tokens, inputs: { target_tokens: { dtype: 'int64', data: datum.targets } } }],
      ...change,
    });

  it('with one sequence id and payload are one request; another payload is a 409', async () => {
    const first = await policy.post('/api/v1/forward_backward', wire());
    const again = await policy.post('/api/v1/forward_backward', wire());
    assert.equal(idOf(first), idOf(again));
    assert.equal((await policy.post('/api/v1/forward_backward', wire({ forwardOnly: true }))).status, 409);
    assert.equal((await policy.post('/api/v1/retrieve_future', { request_id: idOf(first) })).status, 200);
    const log = await policy.received(modelId);
    assert.deepEqual(
      log.map(({ kind }) => kind),
      ['create_model', 'forward_backward'],
    );
  });

  it('stay failed under their sequence id, and leave the model unchanged', async () => {
    const bad = wire({
      data: [{ tokens: datum.tokens, inputs: { target_tokens: { dtype: 'int64', data: [99_999] } } }],
    });
    const reply = await policy.post('/api/v1/forward_backward', bad);
    for (const id of [idOf(reply), idOf(await policy.post('/api/v1/forward_backward', bad))]) {
      const failed = await policy.post('/api/v1/retrieve_future', { request_id: id });
      assert.equal(failed.status, 400);
      assert.match(failed.text, /targetTokens/);
    }
    assert.equal((await policy.received(modelId)).length, 1);
  });

  it('in JSON are a 415, unreadable ones a 422, and an unknown loss or setting is named', async () => {
    assert.equal((await policy.post('/api/v1/forward_backward', {})).status, 415);
    assert.equal((await policy.post('/api/v1/forward_backward', Buffer.from([255, 1, 2]))).status, 422);
    const unknown = await policy.post('/api/v1/forward_backward', wire({ loss: 'gspo' }));
    assert.match(`${unknown.status} ${unknown.text}`, /^422 .*cross_entropy/);
    const setting = await policy.post('/api/v1/forward_backward', wire({ lossConfig: { clip: 1 } }));
    assert.match(`${setting.status} ${setting.text}`, /^422 .*lossConfig\.clip/);
  });

  it('may be compressed with zstd', async () => {
    const reply = await policy.post('/api/v1/forward_backward', zstdCompressSync(wire()), {
      'content-encoding': 'zstd',
    });
    assert.equal(reply.status, 200);
  });

  it('for unknown models are a 404, and names that leave the root a 422', async () => {
    assert.equal((await policy.post('/api/v1/forward_backward', wire({ modelId: 'model_x' }))).status, 404);
    const names = ['../../x', 'a/b', '..', ''];
    for (const path of names) {
      assert.equal((await policy.post('/api/v1/save_weights', { model_id: modelId, path })).status, 422, path);
    }
    const load = { model_id: modelId, path: 'tinker://../../etc/weights/x', optimizer: true };
    assert.equal((await policy.post('/api/v1/load_weights', load)).status, 400);
  });

  it('load weights only as a model’s first request', async () => {
    const path = await trainer.save(modelId, 'first', 1);
    const load = { model_id: modelId, path, optimizer: true, seq_id: 2 };
    assert.equal((await policy.post('/api/v1/load_weights', load)).status, 400);
  });

  it('that name a session create a model with the weights of a checkpoint, once', async () => {
    await trainer.forwardBackward({ modelId, sequence: 1, data: [datum], loss: 'cross_entropy' });
    await trainer.optimStep({
      modelId,
      sequence: 2,
      learningRate: 1e-2,
      beta1: 0.9,
      beta2: 0.95,
      eps: 1e-8,
      weightDecay: 0,
    });
    const path = await trainer.save(modelId, 'source', 3);
    const opened = await policy.post('/api/v1/create_session', { tags: [], sdk_version: '0.38.0' });
    const { session_id } = JSON.parse(opened.text);
    const load = { session_id, model_seq_id: 4, path, optimizer: true };
    const [first, again] = [
      await policy.post('/api/v1/load_weights', load),
      await policy.post('/api/v1/load_weights', load),
    ];
    assert.equal(idOf(first), idOf(again));
    assert.equal((await policy.post('/api/v1/retrieve_future', { request_id: idOf(first) })).status, 200);
    const created = `${session_id}:train:4`;
    assert.deepEqual(
      (await policy.received(created)).map(({ kind, step }) => [kind, step]),
      [['load_weights', 1]],
    );
    assert.equal(await trainer.save(created, 'copy', 1), `tinker://${created}/weights/copy`);
    const without = { ...load, model_seq_id: 5, path: `${path}x` };
    assert.equal((await policy.post('/api/v1/load_weights', without)).status, 404);
    const other = { ...load, model_seq_id: 6, optimizer_config: { type: 'dimuon', version: 1 } };
    const refused = await policy.post('/api/v1/load_weights', other);
    assert.match(`${refused.status} ${refused.text}`, /^400 .*optimizer_config\.type: expected adamw.*got dimuon/);
    const step = { model_id: created, seq_id: 9, optimizer_params: { type: 'dimuon', learning_rate: 1 } };
    const refusedStep = await policy.post('/api/v1/optim_step', step);
    assert.match(`${refusedStep.status} ${refusedStep.text}`, /^400 .*optimizer_params\.type.*got dimuon/);
  });
});
