import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import type { GenerateEvent } from '../../../../../infra/engine/engine.ts';
import { promptOf } from '../../../../../infra/engine/prompt.ts';
import { createVllmEngine } from '../../../../../infra/engine/vllm.ts';
import { startPolicyServer } from '../../../../../infra/kits/embedded-policy/server/start.ts';
import { createTinkerTrainer } from '../../../../../infra/trainer/tinker.ts';
import type { Trainer } from '../../../../../infra/trainer/trainer.ts';
import { until } from '../../../../helpers/until.ts';
import { modelDir, startTestPolicy } from './policy-server.ts';

type Policy = Awaited<ReturnType<typeof startTestPolicy>>;
const tokens = [1, 5, 9, 13, 17, 21];
const datum = { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: [1, 1, 1, 1, 1] };
const adam = { learningRate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 };
const never = new AbortController().signal;

let policy: Policy;
let trainer: Trainer;
before(async () => {
  policy = await startTestPolicy();
  trainer = policy.trainer();
});
after(async () => {
  trainer.close();
  await policy.close();
});

const trained = (modelId: string, sequence: number) =>
  trainer.forwardBackward({ modelId, sequence, data: [datum], loss: 'cross_entropy' });
const publishNew = async (version: number): Promise<string> => {
  const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
  await trained(modelId, 1);
  await trainer.optimStep({ modelId, sequence: 2, ...adam });
  const path = await trainer.saveForSampler(modelId, `v${version}`, 3);
  await policy.engine().publish({ version, name: `v${version}`, path, method: 'reload' });
  return modelId;
};

it('the received log has one entry per effect, with digests that repeat for a replay', async () => {
  const first = await publishNew(1);
  const second = await publishNew(2);
  const [a, b] = await Promise.all([policy.received(first), policy.received(second)]);
  const kinds = ['create_model', 'forward_backward', 'optim_step', 'save_weights'];
  assert.deepEqual(
    a.map(({ kind }) => kind),
    kinds,
  );
  const facts = (log: typeof a) => log.map(({ kind, step, digest, checksum }) => ({ kind, step, digest, checksum }));
  assert.deepEqual(facts(a), facts(b), 'equal batches give equal digests and byte-identical weights');
});

it('a restarted server serves the last published version and has lost its models', async () => {
  const modelId = await publishNew(5);
  const scored = await policy.score(tokens);
  await policy.restart();
  assert.equal((await policy.engine().health()).version, 5);
  assert.deepEqual(await policy.score(tokens), scored);
  await assert.rejects(trained(modelId, 9), /TrainerLostModel|not loaded/);
  assert.ok((await policy.received(modelId)).length > 3, 'its log continues');
});

it('published weights that are gone are not served under their version', async () => {
  const modelId = await publishNew(6);
  await rm(join(policy.root, 'checkpoints', modelId), { recursive: true });
  await policy.restart();
  assert.equal((await policy.engine().health()).version, null);
  await publishNew(7);
});

it('weights change between two tokens of a generation, as its spans show', async () => {
  const engine = policy.engine();
  await publishNew(8);
  const events: GenerateEvent[] = [];
  const request = {
    requestId: 'long',
    prompt: promptOf(tokens),
    maxTokens: 480,
    temperature: 1,
    topP: 1,
    topK: -1,
    stopTokenIds: [],
  };
  for await (const event of engine.generate(request, never)) {
    events.push(event);
    if (events.length === 5) await publishNew(9);
  }
  const versions = events.at(-1)?.versions ?? [];
  assert.deepEqual(
    versions.map(({ version }) => version),
    versions.length === 1 ? [8] : [8, 9],
  );
  assert.equal(versions.at(-1)?.end, 480);
});

it('a pause with abort returns the tokens so far, and a later request waits for the resume', async () => {
  const body = { token_ids: tokens, sampling_params: { max_tokens: 400, logprobs: 0 }, request_id: 'paused' };
  await policy.post('/pause?mode=keep', {});
  const running = policy.post('/inference/v1/generate', body);
  await until(async () => (await unfinished()) === 1);
  await policy.post('/pause?mode=abort', {});
  const waiting = policy.post('/inference/v1/generate', { ...body, sampling_params: { max_tokens: 2 } });
  assert.equal(JSON.parse((await running).text).choices[0].finish_reason, 'abort');
  assert.deepEqual(JSON.parse(await (await fetch(`${policy.url}/is_paused`)).text()), { is_paused: true });
  await policy.post('/resume', {});
  assert.equal(JSON.parse((await waiting).text).choices[0].finish_reason, 'length');
});

it('a client that disconnects frees its slot, and abort_requests aborts by the caller’s id', async () => {
  const leaving = new AbortController();
  const request = {
    requestId: 'gone',
    prompt: promptOf(tokens),
    maxTokens: 480,
    temperature: 1,
    topP: 1,
    topK: -1,
    stopTokenIds: [],
  };
  await policy.post('/pause?mode=keep', {});
  const events = policy.engine().generate(request, leaving.signal)[Symbol.asyncIterator]();
  const first = events.next();
  const named = policy.post('/inference/v1/generate', {
    token_ids: tokens,
    sampling_params: { max_tokens: 400 },
    request_id: 'named',
  });
  await until(async () => (await unfinished()) === 2);
  leaving.abort(new Error('gone'));
  await assert.rejects(first, /gone/);
  await until(async () => (await unfinished()) === 1);
  await policy.post('/inference/v1/abort_requests', { request_ids: ['generate-tokens-named'] });
  assert.equal(JSON.parse((await named).text).choices[0].finish_reason, 'abort');
  await policy.post('/resume', {});
});

it('sampling parameters that this server does not support are refused, not ignored', async () => {
  const cases = [
    [{ min_p: 0.1 }, /min_p: expected 0/],
    [{ n: 2 }, /n: expected 1/],
    [{ max_tokens: 9999 }, /512/],
  ] as const;
  for (const [sampling_params, message] of cases) {
    const reply = await policy.post('/inference/v1/generate', { token_ids: tokens, sampling_params });
    assert.equal(reply.status, 400);
    assert.match(reply.text, message);
  }
  assert.equal((await policy.post('/v1/completions', { prompt: 'text' })).status, 400);
  assert.equal((await policy.post('/v1/completions', { model: 'other', prompt: [1] })).status, 404);
});

it('completions with token ids return the same as generate', async () => {
  const sampling = { max_tokens: 6, seed: 5, logprobs: 0 };
  const generate = await policy.post('/inference/v1/generate', { token_ids: tokens, sampling_params: sampling });
  const completion = await policy.post('/v1/completions', { prompt: tokens, return_token_ids: true, ...sampling });
  const [a, b] = [JSON.parse(generate.text).choices[0], JSON.parse(completion.text).choices[0]];
  assert.deepEqual(b.token_ids, a.token_ids);
  const logprobs = a.logprobs.content.map(({ logprob }: { readonly logprob: number }) => logprob);
  assert.deepEqual(b.logprobs.token_logprobs, logprobs);
});

it('the checksum of the weights in service is that of the checkpoint', async () => {
  const modelId = await publishNew(20);
  const reply = JSON.parse((await policy.post('/weight_checker', { action: 'checksum' })).text);
  assert.equal(reply.checksums.model, (await policy.received(modelId)).at(-1)?.checksum);
});

it('a port in use is reported as such', async () => {
  const port = Number(new URL(policy.url).port);
  const second = startPolicyServer({ port, modelDir, root: join(policy.root, 'second') });
  await assert.rejects(second, /EADDRINUSE.*; stop what listens there, or choose another port/);
});

async function unfinished(): Promise<number> {
  const status = (await (await fetch(`${policy.url}/temper/sampler`)).json()) as {
    readonly running: number;
    readonly waiting: number;
  };
  return status.running + status.waiting;
}

it('a server with keys serves the clients that have them, each on its own routes', async () => {
  const keys = { engine: 'key-of-engine', trainer: 'key-of-trainer' };
  const server = await startPolicyServer({ port: 0, modelDir, root: join(policy.root, 'with-keys'), keys });
  const { url } = server;
  const engineWith = (apiKey?: string) => createVllmEngine({ url, model: 'policy', method: 'reload', apiKey });
  const trainerWith = (apiKey?: string) =>
    createTinkerTrainer({ url, baseModel: 'policy', reduction: 'sum', checkpointsDir: policy.root, apiKey });
  const allowed = trainerWith(keys.trainer);
  const strangers = [trainerWith(), trainerWith(keys.engine)];
  try {
    assert.equal((await fetch(`${url}/health`)).status, 200);
    await engineWith(keys.engine).health();
    await allowed.createModel({ loraRank: 1, seed: 0 });
    for (const key of [undefined, keys.trainer]) await assert.rejects(engineWith(key).health(), /key of the engine/);
    for (const one of strangers) {
      await assert.rejects(one.createModel({ loraRank: 1, seed: 0 }), /key of the trainer/);
    }
    assert.equal((await fetch(`${url}/temper/received`)).status, 401);
  } finally {
    for (const one of [allowed, ...strangers]) one.close();
    await server.close();
  }
});
