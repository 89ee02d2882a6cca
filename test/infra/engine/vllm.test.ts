import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { EngineOptions } from '../../../infra/engine/engine.ts';
import { extend, promptOf } from '../../../infra/engine/prompt.ts';
import { createVllmEngine } from '../../../infra/engine/vllm.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { plainRequest as request } from '../../helpers/engine/plain-request.ts';
import { type Answer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { until } from '../../helpers/until.ts';

type Routes = Readonly<Record<string, (body: unknown) => Answer>>;

async function engineOn(t: TestContext, routes: Routes, options: Partial<EngineOptions> = {}) {
  const server = await startScriptedServer(routes);
  t.after(() => server.close());
  return { server, engine: createVllmEngine({ url: server.url, model: 'base', method: 'reload', ...options }) };
}

const never = new AbortController().signal;
const chunk = (ids: number[], logprobs: (number | null)[], rest: object = {}) =>
  JSON.stringify({
    choices: [
      {
        index: 0,
        token_ids: ids,
        finish_reason: null,
        logprobs: { content: logprobs.map((logprob, index) => ({ token_id: ids[index], logprob })) },
        ...rest,
      },
    ],
  });
const last = (versions: unknown, reason = 'stop') =>
  chunk([], [], { finish_reason: reason, weight_versions: versions, logprobs: null });
const streaming = (...events: string[]): Routes => ({ 'POST /inference/v1/generate': () => ({ events }) });

describe('generation', () => {
  const span = [{ version: '1@x', start: 0, end: 1 }];

  it('yields ids with logprobs as they come, and spans with the finish', async (t) => {
    const spans = [
      { version: '3@a', start: 0, end: 1 },
      { version: '4@b', start: 1, end: 2 },
    ];
    const { engine, server } = await engineOn(
      t,
      streaming(chunk([5], [-0.5]), chunk([9], [-0.1]), last(spans), '[DONE]'),
    );
    assert.deepEqual(await collect(engine.generate(request, never)), [
      { tokenIds: [5], logprobs: [-0.5] },
      { tokenIds: [9], logprobs: [-0.1] },
      {
        tokenIds: [],
        logprobs: [],
        finishReason: 'stop',
        versions: [
          { version: 3, start: 0, end: 1 },
          { version: 4, start: 1, end: 2 },
        ],
      },
    ]);
    const sent = server.seen[0]?.body as { sampling_params: object };
    assert.partialDeepStrictEqual(sent.sampling_params, { top_k: -1, top_p: 1, stop_token_ids: [9], logprobs: 0 });
  });

  it('sends a prompt unchanged, however it grew and however long it is', async (t) => {
    const { engine, server } = await engineOn(t, streaming(chunk([5], [-0.5]), last(span), '[DONE]'));
    const ids = Array.from({ length: 150_000 }, (_, index) => (index * 7_919) % 150_000);
    let prompt = promptOf();
    const steps = [100_000, 1, 0, 20_000, 2_000, 27_998, 1];
    for (const [index, size] of steps.entries()) {
      const from = steps.slice(0, index).reduce((sum, step) => sum + step, 0);
      prompt = extend(prompt, ids.slice(from, from + size));
      await collect(engine.generate({ ...request, prompt }, never));
      const sent = server.seen.at(-1)?.body as { token_ids: readonly number[]; stream: boolean };
      assert.deepEqual([sent.token_ids, sent.stream], [ids.slice(0, from + size), true]);
    }
  });

  const refusals: readonly (readonly [string, Routes, RegExp])[] = [
    [
      'a logprob of -9999',
      streaming(chunk([5], [-9999]), last(span)),
      /finite logprob for token 0 \(id 5\), got -9999/,
    ],
    ['a missing logprob', streaming(chunk([5], [null]), last(span)), /got null/],
    ['fewer logprobs than ids', streaming(chunk([5, 6], [-1]), last(span)), /expected 2 logprobs, got 1/],
    ['spans that leave a token out', streaming(chunk([5, 6], [-1, -1]), last(span)), /over 2 tokens, got 1/],
    ['spans missing altogether', streaming(chunk([5], [-1]), last(undefined)), /expected weight_versions/],
    [
      'a label that is not a version',
      streaming(chunk([5], [-1]), last([{ ...span[0], version: 'main' }])),
      /got "main"/,
    ],
    ['an unknown finish', streaming(chunk([5], [-1]), last(span, 'error')), /finish_reason stop, length or abort/],
    ['more tokens than asked for', streaming(chunk([1, 2, 3, 4, 5], [-1, -1, -1, -1, -1])), /at most 4 tokens/],
    ['a payload that is not JSON', streaming('{"choices": ['), /expected JSON in the stream/],
  ];
  for (const [what, routes, message] of refusals) {
    it(`refuses ${what}`, async (t) => {
      const { engine } = await engineOn(t, routes);
      await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineInvalid', message));
    });
  }

  it('reports an error in mid-stream, a cut stream and a dead engine as unavailable', async (t) => {
    const failed = await engineOn(t, streaming(chunk([5], [-1]), '{"error":{"message":"core died"}}'));
    await assert.rejects(collect(failed.engine.generate(request, never)), failsWith('EngineUnavailable', /core died/));
    const events = [chunk([5], [-1])];
    const cut = await engineOn(t, { 'POST /inference/v1/generate': () => ({ events, cut: true }) });
    await assert.rejects(collect(cut.engine.generate(request, never)), failsWith('EngineUnavailable', /./));
    const { engine, server } = await engineOn(t, {});
    await server.close();
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineUnavailable', /start the engine/));
  });

  it('runs hundreds at once, none of which waits for the connection of another', async (t) => {
    const { engine, server } = await engineOn(t, { 'POST /inference/v1/generate': () => ({ hang: true }) });
    const leaving = new AbortController();
    const running = Array.from({ length: 300 }, (_, index) => {
      const events = engine.generate({ ...request, requestId: `turn-${index}` }, leaving.signal);
      return assert.rejects(collect(events), /gone/);
    });
    await until(() => server.seen.length === running.length);
    leaving.abort(new Error('gone'));
    await Promise.all(running);
  });

  it('refuses unpublished weights, unless the caller gave them a version', async (t) => {
    const routes = streaming(chunk([5], [-1]), last([{ version: 'default', start: 0, end: 1 }]), '[DONE]');
    const { engine } = await engineOn(t, routes);
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineUnavailable', /publish one to it/));
    const known = await engineOn(t, routes, { baseVersion: 7 });
    const events = await collect(known.engine.generate(request, never));
    assert.deepEqual(events.at(-1)?.versions, [{ version: 7, start: 0, end: 1 }]);
  });

  it('falls back to completions without the token route, and takes the version from the label', async (t) => {
    const piece = (rest: object) => JSON.stringify({ choices: [{ index: 0, text: '', ...rest }] });
    const events = [
      piece({ token_ids: [5], logprobs: { token_logprobs: [-0.5] }, finish_reason: null }),
      piece({ token_ids: [9], logprobs: { token_logprobs: [-0.1] }, finish_reason: 'stop' }),
      '[DONE]',
    ];
    const labels = ['4@a', '5@b'];
    const { engine, server } = await engineOn(t, {
      'POST /inference/v1/generate': () => ({ status: 403, json: { error: { message: 'needs --enable-scale-out' } } }),
      'POST /v1/completions': () => ({ events }),
      'GET /weight_info': () => ({ status: 200, json: { weight_version: labels.shift() } }),
    });
    const collected = await collect(engine.generate(request, never));
    assert.deepEqual(collected.at(-1)?.versions, [{ version: 4, start: 0, end: 2 }], 'the older of the two versions');
    const body = server.seen.find(({ route }) => route === 'POST /v1/completions')?.body;
    assert.partialDeepStrictEqual(body, { prompt: [1, 2], return_token_ids: true, logprobs: 0, stream: true });
  });

  it('refuses a server that sends text and logprobs without ids', async (t) => {
    const piece = { index: 0, text: 'Hm', logprobs: { token_logprobs: [-0.5] }, finish_reason: 'stop' };
    const { engine } = await engineOn(t, {
      'POST /inference/v1/generate': () => ({ status: 403, json: { error: { message: 'needs --enable-scale-out' } } }),
      'POST /v1/completions': () => ({ events: [JSON.stringify({ choices: [piece] }), '[DONE]'] }),
      'GET /weight_info': () => ({ status: 200, json: { weight_version: '4@a' } }),
    });
    const asked = collect(engine.generate(request, never));
    await assert.rejects(asked, failsWith('EngineInvalid', /expected the ids of 1 tokens, got only their logprobs/));
  });

  it('sends its key, if it has one', async (t) => {
    const routes = streaming(chunk([5], [-1]), last([{ version: '3@a', start: 0, end: 1 }]), '[DONE]');
    const { engine, server } = await engineOn(t, routes, { apiKey: 'k' });
    await collect(engine.generate(request, never));
    assert.equal(server.seen[0]?.authorization, 'Bearer k');
  });

  it('samples with the newest adapter, whose version is attributed', async (t) => {
    const models = ['base', 'base-v3', 'base-v12', 'other-v99'].map((id) => ({ id }));
    const routes = streaming(chunk([5], [-1]), last([{ version: 'default', start: 0, end: 1 }], 'length'));
    const { engine, server } = await engineOn(
      t,
      { ...routes, 'GET /v1/models': () => ({ status: 200, json: { data: models } }) },
      { method: 'lora' },
    );
    const events = await collect(engine.generate(request, never));
    assert.deepEqual(events.at(-1)?.versions, [{ version: 12, start: 0, end: 1 }]);
    assert.partialDeepStrictEqual(server.seen.at(-1)?.body, { model: 'base-v12' });
  });
});

describe('health', () => {
  const routes = (metrics: string): Routes => ({
    'GET /health': () => ({ status: 200, json: {} }),
    'GET /v1/models': () => ({ status: 200, json: { data: [{ id: 'base', max_model_len: 4096 }] } }),
    'GET /is_paused': () => ({ status: 200, json: { is_paused: true } }),
    'GET /weight_info': () => ({ status: 200, json: { weight_version: '3@a' } }),
    'GET /metrics': () => ({ status: 200, bytes: Buffer.from(metrics), type: 'text/plain' }),
  });
  const info = (labels: string) => `# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{${labels}} 1.0\n`;
  const dtype = 'block_size="16",cache_dtype="auto"';
  const cases: readonly (readonly [string, string, number | null])[] = [
    ['its blocks', info(`${dtype},num_cpu_blocks="7",num_gpu_blocks="573",num_gpu_blocks_override="None"`), 9168],
    ['their number of tokens', info(`${dtype},kv_cache_size_tokens="1000",num_gpu_blocks="62500"`), 1000],
    ['each of several engines', info(`${dtype},num_gpu_blocks="1"`) + info(`${dtype},num_gpu_blocks="2"`), 48],
    ['nothing, if the server reports none', info(`${dtype},num_gpu_blocks="None"`), null],
  ];
  for (const [what, metrics, kvTokens] of cases) {
    it(`reads the KV cache once, from ${what}`, async (t) => {
      const { engine, server } = await engineOn(t, routes(metrics));
      const capacity = { requests: null, kvTokens };
      const expected = { ready: true, paused: true, version: 3, contextLength: 4096, capacity };
      assert.deepEqual(await engine.health(), expected);
      assert.deepEqual(await engine.health(), expected);
      assert.equal(server.seen.filter(({ route }) => route === 'GET /metrics').length, 1);
    });
  }
});

it('reports no context length when the server names none', async (t) => {
  const { engine } = await engineOn(t, {
    'GET /health': () => ({ status: 200, json: {} }),
    'GET /v1/models': () => ({ status: 200, json: { data: [{ id: 'base' }] } }),
    'GET /is_paused': () => ({ status: 200, json: { is_paused: false } }),
    'GET /weight_info': () => ({ status: 200, json: { weight_version: '3@a' } }),
    'GET /metrics': () => ({ status: 404, json: {} }),
  });
  assert.equal((await engine.health()).contextLength, null);
});

describe('publication by reload', () => {
  const publication = { version: 8, name: 'step-8', path: '/weights/8', method: 'reload' } as const;
  const ok = () => ({ status: 200, json: {} });
  const routes = (change: Routes = {}, label = '7@step-7'): Routes => ({
    'GET /weight_info': () => ({ status: 200, json: { weight_version: label } }),
    'GET /is_paused': () => ({ status: 200, json: { is_paused: false } }),
    'GET /v1/models': () => ({ status: 200, json: { data: [{ id: 'base', root: '/models/base', owned_by: 'vllm' }] } }),
    'POST /pause': ok,
    'POST /collective_rpc': ok,
    'POST /update_weight_version': ok,
    'POST /reset_prefix_cache': ok,
    'POST /resume': ok,
    ...change,
  });
  const posts = (server: { readonly seen: readonly { readonly route: string }[] }) =>
    server.seen.flatMap(({ route }) => (route.startsWith('POST ') ? [route.slice('POST '.length)] : []));

  it('pauses, reloads, names the weights, resets caches and resumes', async (t) => {
    const { engine, server } = await engineOn(t, routes());
    await engine.publish(publication);
    const expected = ['/pause', '/collective_rpc', '/update_weight_version', '/reset_prefix_cache', '/resume'];
    assert.deepEqual(posts(server), expected);
  });

  it('pins no version: vLLM loads only adapters beside its weights', async (t) => {
    const { engine, server } = await engineOn(t, routes());
    assert.equal(await engine.pinVersion(7), false);
    assert.deepEqual(posts(server), []);
  });

  it('does nothing when the engine already has the version', async (t) => {
    const { engine, server } = await engineOn(t, routes({}, '8@step-8'));
    await engine.publish(publication);
    assert.deepEqual(posts(server), []);
  });

  it('leaves the engine paused and quarantined after a failed reload, until one succeeds', async (t) => {
    let broken = true;
    const { engine, server } = await engineOn(t, {
      ...routes({
        'POST /collective_rpc': () => (broken ? { status: 500, json: { error: { message: 'shape mismatch' } } } : ok()),
      }),
      ...streaming(chunk([5], [-1]), last([{ version: '8@step-8', start: 0, end: 1 }])),
    });
    await assert.rejects(engine.publish(publication), failsWith('EngineQuarantined', /half-way: shape mismatch/));
    assert.ok(!posts(server).includes('/resume'));
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineQuarantined', /stays paused/));
    broken = false;
    await engine.publish(publication);
    assert.equal((await collect(engine.generate(request, never))).length, 2);
  });

  it('quarantines an engine whose label could not be set', async (t) => {
    const failing = () => ({ status: 500, json: { error: { message: 'no' } } });
    const { engine } = await engineOn(t, routes({ 'POST /update_weight_version': failing }));
    await assert.rejects(engine.publish(publication), failsWith('EngineQuarantined', /half-way/));
  });

  it('resumes on the old weights when the engine refuses the path', async (t) => {
    const refusing = () => ({ status: 400, json: { error: { message: 'outside of the root' } } });
    const { engine, server } = await engineOn(t, routes({ 'POST /collective_rpc': refusing }));
    await assert.rejects(engine.publish(publication), failsWith('EngineInvalid', /outside of the root/));
    assert.equal(posts(server).at(-1), '/resume');
  });
});
