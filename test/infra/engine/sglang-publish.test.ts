import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { EngineOptions } from '../../../infra/engine/engine.ts';
import { createSglangEngine } from '../../../infra/engine/sglang.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { plainRequest as request } from '../../helpers/engine/plain-request.ts';
import { startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { type SglangScript, startSglangServer } from '../../helpers/engine/sglang-server.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';
import { until } from '../../helpers/until.ts';

const never = new AbortController().signal;
const ok = (json: object) => ({ status: 200, json });

async function engineOn(t: TestContext, script: Partial<SglangScript>, options: Partial<EngineOptions> = {}) {
  const server = await startSglangServer({ say: () => ({ ids: [5, 6, 9] }), ...script });
  t.after(() => server.close());
  server.weightVersion = '3@step-3';
  return { server, engine: createSglangEngine({ url: server.url, model: 'base', method: 'reload', ...options }) };
}

describe('health', () => {
  it('reports the version, the longest prompt, and the requests that run at once', async (t) => {
    const { engine } = await engineOn(t, {});
    const capacity = { requests: 128, kvTokens: 20_480 };
    const expected = { ready: true, paused: false, version: 3, contextLength: 4090, capacity };
    assert.deepEqual(await engine.health(), expected);
  });

  it('works without an answer of the scheduler, and with the older routes', async (t) => {
    const server = await startScriptedServer({
      'GET /get_model_info': () => ok({ weight_version: '5@e' }),
      'GET /v1/models': () => ok({ data: [{ id: '/m', max_model_len: 4096 }] }),
      'GET /server_info': () => ({ hang: true }),
    });
    t.after(() => server.close());
    const engine = createSglangEngine({ url: server.url, model: 'base', method: 'reload' });
    assert.deepEqual(await engine.health(), { ready: true, paused: false, version: 5, contextLength: 4096 });
  });

  it('reports no context length when neither the model nor the scheduler names one', async (t) => {
    const server = await startScriptedServer({
      'GET /get_model_info': () => ok({ weight_version: '5@e' }),
      'GET /v1/models': () => ok({ data: [{ id: '/m' }] }),
      'GET /server_info': () => ok({}),
    });
    t.after(() => server.close());
    const engine = createSglangEngine({ url: server.url, model: 'base', method: 'reload' });
    assert.equal((await engine.health()).contextLength, null);
  });
});

describe('publication', () => {
  const publication = { version: 8, name: 'step-8', path: '/weights/8', method: 'reload' } as const;
  const posts = (server: { readonly seen: readonly { readonly route: string }[] }) =>
    server.seen.flatMap(({ route }) => (route.startsWith('POST ') ? [route.slice('POST '.length)] : []));

  it('by reload pauses, updates under the version’s name and resumes; repeated, it only resumes', async (t) => {
    const { engine, server } = await engineOn(t, {});
    await engine.publish(publication);
    assert.equal((await engine.health()).version, 8);
    const expected = ['/pause_generation', '/update_weights_from_disk', '/continue_generation'];
    assert.deepEqual(posts(server), expected);
    const update = server.seen.find(({ route }) => route === 'POST /update_weights_from_disk')?.body;
    const sent = { model_path: '/weights/8', weight_version: '8@step-8', abort_all_requests: false, flush_cache: true };
    assert.deepEqual(update, sent);
    await engine.publish(publication);
    assert.deepEqual(posts(server), [...expected, '/continue_generation']);
  });

  it('aborts running requests with the update when the server cannot pause', async (t) => {
    const { engine, server } = await engineOn(t, {
      instead: ({ route }) =>
        /pause|continue/.test(route) ? { status: 404, json: { detail: 'Not Found' } } : undefined,
    });
    await engine.publish(publication);
    const update = server.seen.find(({ route }) => route === 'POST /update_weights_from_disk')?.body;
    assert.equal(update.abort_all_requests, true);
  });

  it('resumes on the old weights when the new ones do not exist', async (t) => {
    const message = 'Failed to get weights iterator: no such directory.';
    const { engine, server } = await engineOn(t, { update: () => ({ success: false, message }) });
    await assert.rejects(engine.publish(publication), failsWith('EngineInvalid', /no such directory/));
    assert.equal(posts(server).at(-1), '/continue_generation');
    assert.equal((await collect(engine.generate(request, never))).length, 3);
  });

  it('leaves the server paused and quarantined after a half-way failure, until an update succeeds', async (t) => {
    const message = 'Failed to update weights: shape mismatch.\nRolling back to original weights.';
    let success = false;
    const { engine, server } = await engineOn(t, { update: () => ({ success, message }) });
    await assert.rejects(engine.publish(publication), failsWith('EngineQuarantined', /half-way: .*shape mismatch/));
    assert.ok(!posts(server).includes('/continue_generation'));
    await assert.rejects(collect(engine.generate(request, never)), failsWith('EngineQuarantined', /stays paused/));
    success = true;
    await engine.publish(publication);
    assert.equal((await collect(engine.generate(request, never))).at(-1)?.versions?.[0]?.version, 8);
  });

  it('quarantines a server that does not take the name of the version', async (t) => {
    const { engine } = await engineOn(t, {
      instead: ({ route }) => (route.endsWith('from_disk') ? ok({ success: true, message: 'done' }) : undefined),
    });
    const got = /expected weight_version "8@step-8", got "3@step-3"/;
    await assert.rejects(engine.publish(publication), failsWith('EngineQuarantined', got));
  });

  it('as an adapter loads under a name of its own, which requests are sent to and attributed to', async (t) => {
    const { engine, server } = await engineOn(t, {}, { method: 'lora', keepAdapters: 1 });
    for (const version of [6, 7, 8]) {
      await engine.publish({ version, name: `step-${version}`, path: `/weights/${version}`, method: 'lora' });
    }
    const changes = server.seen.flatMap(({ route, body }) =>
      /lora/.test(route) ? [`${route} ${body.lora_name}`] : [],
    );
    assert.deepEqual(changes, [
      'POST /load_lora_adapter base-v6',
      'POST /load_lora_adapter base-v7',
      'POST /load_lora_adapter base-v8',
      'POST /unload_lora_adapter base-v6',
    ]);
    const events = await collect(engine.generate(request, never));
    assert.deepEqual(events.at(-1)?.versions, [{ version: 8, start: 0, end: 3 }]);
    assert.equal(server.seen.at(-1)?.body.lora_path, 'base-v8');
    assert.equal((await engine.health()).version, 8);
  });
});

it('a turn continues over an update, each part with its version', async (t) => {
  const bytes = (text: string): number[] => [...Buffer.from(text)];
  const { engine, server } = await engineOn(t, {
    incremental: true,
    say: (_, index) => (index === 0 ? { ids: bytes('Hel'), hang: true } : { ids: [...bytes('lo'), 258] }),
  });
  await using gateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  const asked = gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }] });
  await until(() => server.running === 1);
  await engine.publish({ version: 4, name: 'step-4', path: '/weights/4', method: 'reload' });
  assert.equal((await asked).json.choices[0].message.content, 'Hello');
  const { turns } = await gateway.traceOf(await gateway.control.seal('a.1'));
  assert.deepEqual(turns[0]?.versions, [
    { version: 3, start: 0, end: 3 },
    { version: 4, start: 3, end: 6 },
  ]);
});
