import assert from 'node:assert/strict';
import { it } from 'node:test';
import { limits } from '../../../infra/gateway/limits.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';
import { writeTinyModel } from '../../helpers/models/tiny-model.ts';

const template = (before: string) => `{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' }}{%- if not loop.last %}{{ '${before}' }}{% endif -%}{{ message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}`;

/** Returns the events that a gateway logs at its start for a model with this template. */
async function startOf(text: string) {
  await using tiny = await writeTinyModel(text);
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
  await using gateway = await startTestGateway(engine, { modelDir: tiny.dir });
  return { dir: tiny.dir, events: gateway.events.filter(({ kind }) => kind === 'template-forks') };
}

it('a gateway logs at its start that a template rewrites earlier turns, with its name and the cost', async () => {
  const { dir, events } = await startOf(template('earlier: '));
  const [first] = events;
  assert.ok(first?.kind === 'template-forks');
  assert.equal(first.template, dir);
  assert.equal(first.turn, 'a user turn after a plain reply');
  assert.ok((first.reason ?? '').length > 10);
  assert.match(first.cost, /its own segment/);
  const turns = (await startOf(template(''))).events.map((event) => event.kind === 'template-forks' && event.turn);
  assert.ok(!turns.includes('a user turn after a plain reply'), turns.join());
});

it('a gateway logs a limited number of the failed requests of a session, and those of other sessions all the same', async () => {
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
  await using gateway = await startTestGateway(engine);
  const [noisy, other] = [await gateway.open('noisy'), await gateway.open('other')];
  for (let times = 0; times < 100; times += 1) {
    assert.equal((await gateway.post(`/no-such-path-${times}`, noisy, {})).status, 404);
  }
  assert.equal((await gateway.post('/no-such-path', other, {})).status, 404);
  const failures = gateway.events.filter((event) => event.kind === 'request-failed');
  const ofNoisy = failures.filter(({ session }) => session === 'noisy');
  assert.equal(ofNoisy.length, limits.loggedFailures);
  assert.match(ofNoisy.at(-1)?.error ?? '', /no-such-path-19; further ones of this minute are not logged$/);
  assert.equal(failures.at(-1)?.session, 'other');
});
