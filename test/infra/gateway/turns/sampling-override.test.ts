import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Upstreams } from '../../../../infra/gateway/upstream/upstreams.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startScriptedServer } from '../../../helpers/engine/scripted-server.ts';
import { openSession, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

const own = { temperature: 0.2, top_p: 0.5, top_k: 7 };
const theRuns = { temperature: 1, topP: 1, topK: -1 };
const theClients = { temperature: 0.2, topP: 0.5, topK: 7 };
const overridable = { sampling: { ...openSession('a.1').sampling, overridable: true } };

/** The same request in each dialect. */
const asks: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['/v1/responses', { input: 'x', store: false }],
  ['/v1/messages', { messages: [{ role: 'user', content: 'x' }], max_tokens: 50 }],
];

const sayGood = () => createScriptedEngine({ script: () => ({ kind: 'say', ids: [...Buffer.from('Good')] }) });

async function post(gateway: TestGateway, secret: string, path: string, body: object): Promise<void> {
  const reply = await gateway.post(path, secret, body);
  assert.equal(reply.status, 200, reply.text);
}

describe("an agent's own sampling parameters", () => {
  for (const [path, body] of asks) {
    it(`are ignored at ${path} unless the session allows them; then the turn records them`, async () => {
      const engine = sayGood();
      await using gateway = await startTestGateway(engine);
      await post(gateway, await gateway.open('a.1'), path, { ...body, ...own });
      await post(gateway, await gateway.open('a.2', overridable), path, { ...body, ...own });
      await post(gateway, await gateway.open('a.3', overridable), path, body);
      const seen = engine.requests.map(({ temperature, topP, topK }) => ({ temperature, topP, topK }));
      assert.deepEqual(seen, [theRuns, theClients, theRuns]);
      const traces = await Promise.all(
        ['a.1', 'a.2', 'a.3'].map(async (id) => gateway.traceOf(await gateway.control.seal(id))),
      );
      assert.deepEqual(
        traces.map(({ turns }) => turns[0]?.sampling),
        [undefined, theClients, undefined],
      );
    });
  }

  it('override the session field by field, and a top-k of 0 turns it off', async () => {
    const engine = sayGood();
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', overridable);
    const [[path, body]] = asks as [(typeof asks)[0]];
    await post(gateway, secret, path, { ...body, temperature: 0, top_p: null, top_k: 0 });
    const [{ temperature, topP, topK } = assert.fail()] = engine.requests;
    assert.deepEqual({ temperature, topP, topK }, { temperature: 0, topP: 1, topK: -1 });
  });

  it('are rejected outside the bounds of engines, without a turn', async () => {
    const engine = sayGood();
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', overridable);
    for (const [path, body] of asks) {
      for (const wrong of [{ temperature: -1 }, { temperature: 'hot' }, { top_p: 0 }, { top_p: 2 }, { top_k: 1.5 }]) {
        const reply = await gateway.post(path, secret, { ...body, ...wrong });
        assert.equal(reply.status, 400, reply.text);
        assert.match(reply.text, new RegExp(Object.keys(wrong)[0] ?? ''));
      }
    }
    assert.equal(engine.requests.length, 0);
  });

  it('reach an upstream model', async () => {
    const choices = [{ message: { content: 'Hi.' }, finish_reason: 'stop' }];
    const json = { model: 'large-1', choices, usage: { prompt_tokens: 4, completion_tokens: 2 } };
    const server = await startScriptedServer({ 'POST /v1/chat/completions': () => ({ status: 200, json }) });
    const upstreams: Upstreams = {
      find: async (name) => ({
        name,
        url: `${server.url}/v1`,
        model: 'large',
        apiKey: null,
        contextLength: 9000,
        maxTokensField: 'max_tokens',
        returnsReasoning: false,
        readsImages: false,
        namesSession: false,
      }),
    };
    try {
      await using gateway = await startTestGateway(sayGood(), { upstreams });
      const upstream = { name: 'others', model: 'large' };
      for (const [id, more] of [
        ['a.1', {}],
        ['a.2', overridable],
      ] as const) {
        const secret = await gateway.open(id, { upstream, ...more });
        await post(gateway, secret, '/v1/chat/completions', { ...asks[0]?.[1], ...own });
      }
      // biome-ignore lint/suspicious/noExplicitAny: tests read requests as servers do
      const bodies = server.seen.map(({ body }) => body as any);
      assert.deepEqual(
        bodies.map(({ temperature, top_p, top_k }) => [temperature, top_p, top_k]),
        [
          [undefined, undefined, undefined],
          [0.2, 0.5, 7],
        ],
      );
      assert.deepEqual((await gateway.traceOf(await gateway.control.seal('a.2'))).turns[0]?.sampling, theClients);
    } finally {
      await server.close();
    }
  });
});
