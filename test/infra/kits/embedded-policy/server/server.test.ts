import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import type { GenerateEvent } from '../../../../../infra/engine/engine.ts';
import { promptOf } from '../../../../../infra/engine/prompt.ts';
import { startPolicyServer } from '../../../../../infra/kits/embedded-policy/server/start.ts';
import { encodeRequest, type WireForwardBackward } from '../../../../../infra/kits/tinker-wire/index.ts';
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

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const binary = body instanceof Uint8Array;
  const type = binary ? 'application/x-protobuf' : 'application/json';
  const content = binary ? Buffer.from(body) : JSON.stringify(body);
  const response = await fetch(policy.url + path, {
    method: 'POST',
    headers: { 'content-type': type, ...headers },
    body: content,
  });
  return { status: response.status, text: await response.text() };
}

const idOf = (reply: { readonly text: string }): string => JSON.parse(reply.text).request_id;
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

describe('tinker requests', () => {
  let modelId: string;
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
    const first = await post('/api/v1/forward_backward', wire());
    const again = await post('/api/v1/forward_backward', wire());
    assert.equal(idOf(first), idOf(again));
    assert.equal((await post('/api/v1/forward_backward', wire({ forwardOnly: true }))).status, 409);
    assert.equal((await post('/api/v1/retrieve_future', { request_id: idOf(first) })).status, 200);
    const log = await received(modelId);
    assert.deepEqual(
      log.map(({ kind }) => kind),
      ['create_model', 'forward_backward'],
    );
  });

  it('stay failed under their sequence id, and leave the model unchanged', async () => {
    const bad = wire({
      data: [{ tokens: datum.tokens, inputs: { target_tokens: { dtype: 'int64', data: [99_999] } } }],
    });
    const reply = await post('/api/v1/forward_backward', bad);
    for (const id of [idOf(reply), idOf(await post('/api/v1/forward_backward', bad))]) {
      const failed = await post('/api/v1/retrieve_future', { request_id: id });
      assert.equal(failed.status, 400);
      assert.match(failed.text, /targetTokens/);
    }
    assert.equal((await received(modelId)).length, 1);
  });

  it('in JSON are a 415, unreadable ones a 422, and an unknown loss or setting is named', async () => {
    assert.equal((await post('/api/v1/forward_backward', {})).status, 415);
    assert.equal((await post('/api/v1/forward_backward', Buffer.from([255, 1, 2]))).status, 422);
    const unknown = await post('/api/v1/forward_backward', wire({ loss: 'gspo' }));
    assert.match(`${unknown.status} ${unknown.text}`, /^422 .*cross_entropy/);
    const setting = await post('/api/v1/forward_backward', wire({ lossConfig: { clip: 1 } }));
    assert.match(`${setting.status} ${setting.text}`, /^422 .*lossConfig\.clip/);
  });

  it('may be compressed with zstd', async () => {
    const reply = await post('/api/v1/forward_backward', zstdCompressSync(wire()), { 'content-encoding': 'zstd' });
    assert.equal(reply.status, 200);
  });

  it('for unknown models are a 404, and names that leave the root a 422', async () => {
    assert.equal((await post('/api/v1/forward_backward', wire({ modelId: 'model_x' }))).status, 404);
    const names = ['../../x', 'a/b', '..', ''];
    for (const path of names) {
      assert.equal((await post('/api/v1/save_weights', { model_id: modelId, path })).status, 422, path);
    }
    const load = { model_id: modelId, path: 'tinker://../../etc/weights/x', optimizer: true };
    assert.equal((await post('/api/v1/load_weights', load)).status, 400);
  });

  it('load weights only as a model’s first request', async () => {
    const path = await trainer.save(modelId, 'first', 1);
    const load = { model_id: modelId, path, optimizer: true, seq_id: 2 };
    assert.equal((await post('/api/v1/load_weights', load)).status, 400);
  });
});

it('the received log has one entry per effect, with digests that repeat for a replay', async () => {
  const first = await publishNew(1);
  const second = await publishNew(2);
  const [a, b] = await Promise.all([received(first), received(second)]);
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
  assert.ok((await received(modelId)).length > 3, 'its log continues');
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
  await post('/pause?mode=keep', {});
  const running = post('/inference/v1/generate', body);
  await post('/pause?mode=abort', {});
  const waiting = post('/inference/v1/generate', { ...body, sampling_params: { max_tokens: 2 } });
  const partial = await Promise.race([running, waiting]);
  assert.equal(JSON.parse(partial.text).choices[0].finish_reason, 'abort');
  assert.deepEqual(JSON.parse(await (await fetch(`${policy.url}/is_paused`)).text()), { is_paused: true });
  await post('/resume', {});
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
  await post('/pause?mode=keep', {});
  const events = policy.engine().generate(request, leaving.signal)[Symbol.asyncIterator]();
  const first = events.next();
  const named = post('/inference/v1/generate', {
    token_ids: tokens,
    sampling_params: { max_tokens: 400 },
    request_id: 'named',
  });
  await until(async () => (await unfinished()) === 2);
  leaving.abort(new Error('gone'));
  await assert.rejects(first, /gone/);
  await until(async () => (await unfinished()) === 1);
  await post('/inference/v1/abort_requests', { request_ids: ['generate-tokens-named'] });
  assert.equal(JSON.parse((await named).text).choices[0].finish_reason, 'abort');
  await post('/resume', {});
});

it('sampling parameters that this server does not support are refused, not ignored', async () => {
  const cases = [
    [{ min_p: 0.1 }, /min_p: expected 0/],
    [{ n: 2 }, /n: expected 1/],
    [{ max_tokens: 9999 }, /512/],
  ] as const;
  for (const [sampling_params, message] of cases) {
    const reply = await post('/inference/v1/generate', { token_ids: tokens, sampling_params });
    assert.equal(reply.status, 400);
    assert.match(reply.text, message);
  }
  assert.equal((await post('/v1/completions', { prompt: 'text' })).status, 400);
  assert.equal((await post('/v1/completions', { model: 'other', prompt: [1] })).status, 404);
});

it('completions with token ids return the same as generate', async () => {
  const sampling = { max_tokens: 6, seed: 5, logprobs: 0 };
  const generate = await post('/inference/v1/generate', { token_ids: tokens, sampling_params: sampling });
  const completion = await post('/v1/completions', { prompt: tokens, return_token_ids: true, ...sampling });
  const [a, b] = [JSON.parse(generate.text).choices[0], JSON.parse(completion.text).choices[0]];
  assert.deepEqual(b.token_ids, a.token_ids);
  const logprobs = a.logprobs.content.map(({ logprob }: { readonly logprob: number }) => logprob);
  assert.deepEqual(b.logprobs.token_logprobs, logprobs);
});

it('the checksum of the weights in service is that of the checkpoint', async () => {
  const modelId = await publishNew(20);
  const reply = JSON.parse((await post('/weight_checker', { action: 'checksum' })).text);
  assert.equal(reply.checksums.model, (await received(modelId)).at(-1)?.checksum);
});

it('a port in use is reported as such', async () => {
  const port = Number(new URL(policy.url).port);
  const second = startPolicyServer({ port, modelDir, root: join(policy.root, 'second') });
  await assert.rejects(second, /EADDRINUSE.*; stop what listens there, or choose another port/);
});

async function received(modelId: string) {
  const reply = await fetch(`${policy.url}/temper/received?model=${modelId}`);
  const { entries } = (await reply.json()) as {
    readonly entries: readonly {
      readonly kind: string;
      readonly step: number;
      readonly digest: string;
      readonly checksum: string;
    }[];
  };
  return entries;
}

async function unfinished(): Promise<number> {
  const status = (await (await fetch(`${policy.url}/temper/sampler`)).json()) as {
    readonly running: number;
    readonly waiting: number;
  };
  return status.running + status.waiting;
}
