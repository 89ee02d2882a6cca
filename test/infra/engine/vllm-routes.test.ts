import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createVllmEngine } from '../../../infra/engine/vllm.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { plainRequest as request } from '../../helpers/engine/plain-request.ts';
import { type Answer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';

const never = new AbortController().signal;

it('a server that refuses both routes is to blame, and the one that comes after it is asked for the token route', async (t) => {
  let refuses = true;
  const refusal: Answer = { status: 403, json: { error: { message: 'wrong key' } } };
  const choice = {
    token_ids: [5],
    logprobs: { content: [{ token_id: 5, logprob: -0.5 }] },
    finish_reason: 'stop',
    weight_versions: [{ version: '1@x', start: 0, end: 1 }],
  };
  const server = await startScriptedServer({
    'POST /inference/v1/generate': () =>
      refuses ? refusal : { events: [JSON.stringify({ choices: [choice] }), '[DONE]'] },
    'POST /v1/completions': () => refusal,
    'GET /weight_info': () => ({ status: 200, json: { weight_version: '1@x' } }),
  });
  t.after(() => server.close());
  const engine = createVllmEngine({ url: server.url, model: 'base', method: 'reload' });
  await assert.rejects(
    collect(engine.generate(request, never)),
    failsWith('EngineUnavailable', /completions .*expected 200, got 403: wrong key/),
  );
  // It has no health to report either, as a server that is being replaced.
  await assert.rejects(engine.health());
  refuses = false;
  await collect(engine.generate(request, never));
  assert.equal(server.seen.at(-1)?.route, 'POST /inference/v1/generate');
});
