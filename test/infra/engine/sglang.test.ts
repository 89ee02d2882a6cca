import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import type { EngineOptions, GenerateEvent } from '../../../infra/engine/engine.ts';
import { createSglangEngine } from '../../../infra/engine/sglang.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { plainRequest } from '../../helpers/engine/plain-request.ts';
import { type Answer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { type SglangScript, startSglangServer } from '../../helpers/engine/sglang-server.ts';
import { until } from '../../helpers/until.ts';

/** Test helpers take SGLang's place: test/helpers/engine/sglang-server.ts follows its source. */
const request = { ...plainRequest, seed: 7 };
const never = new AbortController().signal;

async function engineOn(t: TestContext, script: Partial<SglangScript>, options: Partial<EngineOptions> = {}) {
  const server = await startSglangServer({ say: () => ({ ids: [5, 6, 9] }), ...script });
  t.after(() => server.close());
  server.weightVersion = '3@step-3';
  return { server, engine: createSglangEngine({ url: server.url, model: 'base', method: 'reload', ...options }) };
}

describe('generation', () => {
  for (const incremental of [false, true]) {
    it(`yields each token once, from ${incremental ? 'increments' : 'chunks that repeat all before them'}`, async (t) => {
      const { engine, server } = await engineOn(t, { incremental });
      assert.deepEqual(await collect(engine.generate(request, never)), [
        { tokenIds: [5], logprobs: [-0.001] },
        { tokenIds: [6], logprobs: [-0.002] },
        {
          tokenIds: [9],
          logprobs: [-0.003],
          finishReason: 'stop',
          versions: [{ version: 3, start: 0, end: 3 }],
        },
      ]);
      const { body } = server.seen.find(({ route }) => route === 'POST /generate') ?? {};
      assert.partialDeepStrictEqual(body, { input_ids: [1, 2], stream: true, return_logprob: true });
      const sent = { max_new_tokens: 4, stop_token_ids: [9], top_k: -1, no_stop_trim: true, sampling_seed: 7 };
      assert.partialDeepStrictEqual(body.sampling_params, sent);
      assert.ok(!('lora_path' in body));
      assert.deepEqual(
        server.seen.filter(({ route }) => route === 'POST /abort_request'),
        [],
      );
    });
  }

  it('yields the tokens unchanged, whatever the chunks and the way of streaming', async () => {
    const tokens = fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(tokens, fc.boolean(), fc.integer({ min: 1, max: 7 }), async (ids, incremental, perChunk) => {
        const server = await startSglangServer({ say: () => ({ ids }), incremental, perChunk });
        try {
          const engine = createSglangEngine({ url: server.url, model: 'base', method: 'reload', baseVersion: 0 });
          const events = await collect(engine.generate({ ...request, maxTokens: 30 }, never));
          assert.deepEqual(
            events.flatMap(({ tokenIds }) => tokenIds),
            ids,
          );
          assert.deepEqual(
            events.flatMap(({ logprobs }) => logprobs),
            ids.map((_, at) => -(at + 1) / 1000),
          );
        } finally {
          await server.close();
        }
      }),
      { numRuns: 25 },
    );
  });

  it('ends an aborted request with the tokens it has, each once, in both ways of streaming', async (t) => {
    for (const incremental of [false, true]) {
      const { engine, server } = await engineOn(t, { incremental, say: () => ({ ids: [5, 6], hang: true }) });
      const events: GenerateEvent[] = [];
      for await (const event of engine.generate(request, never)) {
        events.push(event);
        if (events.length === 2) await fetch(`${server.url}/pause_generation`, post({ mode: 'abort' }));
      }
      assert.deepEqual(
        events.flatMap(({ tokenIds }) => tokenIds),
        [5, 6],
      );
      assert.equal(events.at(-1)?.finishReason, 'abort');
    }
  });

  it('aborts the request of a caller that leaves, and none with the same prefix', async (t) => {
    const { engine, server } = await engineOn(t, { say: () => ({ ids: [5], hang: true }) });
    const staying = engine.generate({ ...request, requestId: 'turn-10' }, never)[Symbol.asyncIterator]();
    assert.deepEqual((await staying.next()).value?.tokenIds, [5]);
    const leaving = new AbortController();
    const left = assert.rejects(collect(engine.generate(request, leaving.signal)), /gone/);
    await until(() => server.running === 2);
    leaving.abort(new Error('gone'));
    await left;
    assert.equal(server.running, 1);
    const [stays, leaves] = server.seen.flatMap(({ route, body }) => (route === 'POST /generate' ? [body.rid] : []));
    const taken = server.seen.flatMap(({ route, body }) => (route === 'POST /abort_request' ? [body.rid] : []));
    assert.deepEqual([taken, stays.startsWith(leaves)], [[leaves], false]);
    await staying.return?.();
    assert.equal(server.running, 0);
  });

  it('does not delay a caller that leaves when the server fails to abort the request', async (t) => {
    const server = await startScriptedServer({
      'POST /generate': () => ({ hang: true }),
      'POST /abort_request': () => ({ events: [], cut: true }),
    });
    t.after(() => server.close());
    const engine = createSglangEngine({ url: server.url, model: 'base', method: 'reload' });
    const leaving = new AbortController();
    const left = assert.rejects(collect(engine.generate(request, leaving.signal)), /gone/);
    await until(() => server.seen.length === 1);
    leaving.abort(new Error('gone'));
    await left;
    assert.equal(server.seen.at(-1)?.route, 'POST /abort_request');
  });

  it('without spans, attributes the older version of the first and the last chunk', async (t) => {
    const chunks = [
      chunk([[-1, 5]], 1, { weight_version: '3@a' }),
      chunk([[-1, 6]], 2, { ...stop, weight_version: '4@b' }),
    ];
    const { engine } = await scripted(t, () => ({ events: chunks }));
    const events = await collect(engine.generate(request, never));
    assert.deepEqual(events.at(-1)?.versions, [{ version: 3, start: 0, end: 2 }]);
  });

  it('refuses unpublished weights, unless the caller gave them a version', async (t) => {
    const { engine, server } = await engineOn(t, {});
    server.weightVersion = 'default';
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineUnavailable', /publish one to it/));
    const known = createSglangEngine({ url: server.url, model: 'base', method: 'reload', baseVersion: 7 });
    const events = await collect(known.generate(request, never));
    assert.deepEqual(events.at(-1)?.versions, [{ version: 7, start: 0, end: 3 }]);
  });
});

const stop = { finish_reason: { type: 'stop', matched: 9 } };
const post = (body: object) => ({ method: 'POST', body: JSON.stringify(body) });
const chunk = (logprobs: unknown, all: number, rest: object = {}) =>
  JSON.stringify({
    output_ids: [],
    meta_info: {
      id: 'x',
      finish_reason: null,
      completion_tokens: all,
      weight_version: '1@x',
      output_token_logprobs: logprobs,
      ...rest,
    },
  });

async function scripted(t: TestContext, generate: () => Answer) {
  const server = await startScriptedServer({ 'POST /generate': generate, 'POST /abort_request': () => ok({}) });
  t.after(() => server.close());
  return { server, engine: createSglangEngine({ url: server.url, model: 'base', method: 'reload' }) };
}

const ok = (json: object) => ({ status: 200, json });
const aborted = (rest: object) => ({ finish_reason: { type: 'abort', message: 'it says why', ...rest } });

const token = (rest: object) => [chunk([[-1, 5]], 1, rest)];

describe('replies that cannot be trained on', () => {
  const cases: readonly (readonly [string, string, readonly string[], RegExp])[] = [
    ['NaN as a logprob', 'EngineInvalid', [chunk([[null, 5]], 1, stop)], /for token 0 \(id 5\), got null/],
    ['no logprobs', 'EngineInvalid', [chunk(undefined, 1, stop)], /logprobs of 1 new or of all 1 tokens, got none/],
    ['too few logprobs', 'EngineInvalid', [chunk([[-1, 5]], 3, stop)], /of 3 new or of all 3 tokens, got 1/],
    [
      'more logprobs than tokens',
      'EngineInvalid',
      [
        chunk(
          [
            [-1, 5],
            [-1, 6],
          ],
          1,
          stop,
        ),
      ],
      /all 1 tokens, got 2/,
    ],
    ['an entry that is not a pair', 'EngineInvalid', [chunk(['x'], 1, stop)], /unreadable chunk/],
    ['no count of tokens', 'EngineInvalid', ['{"meta_info":{"output_token_logprobs":[]}}'], /completion_tokens/],
    ['a label that is not a version', 'EngineInvalid', token({ ...stop, weight_version: 'main' }), /got "main"/],
    ['no version at all', 'EngineInvalid', token({ ...stop, weight_version: null }), /expected weight_version/],
    ['spans that leave a token out', 'EngineInvalid', token({ ...stop, weight_versions: [] }), /over 1 tokens, got 0/],
    ['an unknown finish', 'EngineInvalid', token({ finish_reason: { type: 'eof' } }), /got "eof"/],
    ['NaN as a stop', 'EngineInvalid', token({ finish_reason: { type: 'stop', matched: 'NaN happened' } }), /got NaN/],
    ['a request refused', 'EngineInvalid', [chunk([], 0, aborted({ status_code: 400 }))], /status 400: it says why/],
    ['a full queue', 'EngineUnavailable', [chunk([], 0, aborted({ status_code: 503 }))], /status 503: it says why/],
    ['an error at first', 'EngineInvalid', ['{"error":{"message":"too long"}}'], /refused .*too long/],
    ['an error later', 'EngineUnavailable', [...token({}), '{"error":{"message":"it died"}}'], /mid-stream: it died/],
    ['an end without a finish', 'EngineUnavailable', token({}), /end of the stream after 1 tokens/],
  ];
  for (const [what, type, events, message] of cases) {
    it(`${what}: ${type}`, async (t) => {
      const { engine } = await scripted(t, () => ({ events }));
      await assert.rejects(collect(engine.generate(request, never)), failsWith(type, message));
    });
  }

  it('reports a dead engine as unavailable and a refused body as invalid', async (t) => {
    const { engine, server } = await scripted(t, () => ({ status: 400, json: { message: 'input_ids is wrong' } }));
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineInvalid', /input_ids is wrong/));
    await server.close();
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineUnavailable', /start the engine/));
  });
});
