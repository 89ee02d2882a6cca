import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { createVllmEngine } from '../../../infra/engine/vllm.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { plainRequest as request } from '../../helpers/engine/plain-request.ts';
import { type Answer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';

type Routes = Readonly<Record<string, (body: unknown) => Answer>>;

async function engineOn(t: TestContext, routes: Routes) {
  const server = await startScriptedServer(routes);
  t.after(() => server.close());
  return { server, engine: createVllmEngine({ url: server.url, model: 'base', method: 'lora' }) };
}

const never = new AbortController().signal;

describe('publication as an adapter', () => {
  const listed = (...models: readonly (readonly [string, string])[]): Routes => ({
    'GET /v1/models': () => ({ status: 200, json: { data: models.map(([id, root]) => ({ id, root })) } }),
    'POST /v1/load_lora_adapter': () => ({ status: 200, json: {} }),
    'POST /v1/unload_lora_adapter': () => ({ status: 200, json: {} }),
  });
  const changes = (server: { readonly seen: readonly { readonly route: string; readonly body: unknown }[] }) =>
    server.seen.flatMap(({ route, body }) =>
      route.startsWith('POST ') ? [`${route.split('/')[2]} ${(body as { lora_name: string }).lora_name}`] : [],
    );
  const publication = { version: 8, name: 'step-8', path: '/weights/8', method: 'lora' } as const;

  it('loads under a name of its own, keeps the last two before it and unloads older and later ones', async (t) => {
    const models = listed(['base', '/m'], ['base-v5', '/5'], ['base-v6', '/6'], ['base-v7', '/7'], ['base-v9', '/9']);
    const { engine, server } = await engineOn(t, models);
    await engine.publish(publication);
    const expected = ['load_lora_adapter base-v8', 'unload_lora_adapter base-v9', 'unload_lora_adapter base-v5'];
    assert.deepEqual(changes(server), expected);
  });

  it('keeps those that running requests still use', async (t) => {
    const models = listed(['base', '/m'], ['base-v1', '/1'], ['base-v4', '/4'], ['base-v5', '/5'], ['base-v6', '/6']);
    const { engine, server } = await engineOn(t, models);
    await engine.publish({ ...publication, keep: [1] });
    assert.deepEqual(changes(server), ['load_lora_adapter base-v8', 'unload_lora_adapter base-v4']);
  });

  it('does nothing for the same path, and replaces another run’s adapter of that number', async (t) => {
    const same = await engineOn(t, listed(['base-v8', '/weights/8']));
    await same.engine.publish(publication);
    assert.deepEqual(changes(same.server), []);
    const foreign = await engineOn(t, listed(['base-v8', '/another/run']));
    await foreign.engine.publish(publication);
    assert.deepEqual(changes(foreign.server), ['unload_lora_adapter base-v8', 'load_lora_adapter base-v8']);
  });
});

it('a request can name an older adapter, and is refused when that one is not loaded', async (t) => {
  const models = ['base', 'base-v3', 'base-v12'].map((id) => ({ id, max_model_len: 64 }));
  const choice = { index: 0, token_ids: [5], logprobs: { content: [{ token_id: 5, logprob: -1 }] } };
  const event = JSON.stringify({ choices: [{ ...choice, finish_reason: 'length' }] });
  const { engine, server } = await engineOn(t, {
    'POST /inference/v1/generate': () => ({ events: [event, '[DONE]'] }),
    'GET /health': () => ({ status: 200, json: {} }),
    'GET /v1/models': () => ({ status: 200, json: { data: models } }),
  });
  const events = await collect(engine.generate({ ...request, policyVersion: 3 }, never));
  assert.deepEqual(events.at(-1)?.versions, [{ version: 3, start: 0, end: 1 }]);
  assert.partialDeepStrictEqual(server.seen.at(-1)?.body, { model: 'base-v3' });
  const gone = collect(engine.generate({ ...request, policyVersion: 4 }, never));
  await assert.rejects(gone, failsWith('VersionNotServed', /an adapter of policy version 4, got 3, 12/));
  const { version, versions } = await engine.health();
  assert.deepEqual([version, versions], [12, [3, 12]]);
});
