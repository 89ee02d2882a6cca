import assert from 'node:assert/strict';
import { it } from 'node:test';
import { limits } from '../../../../infra/gateway/limits.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

it('a session rejects model calls beyond its limit of running ones, and other sessions are not affected', async () => {
  const engine = createScriptedEngine({
    script: ({ session }) => (session === 'busy.1' ? { kind: 'hang' } : { kind: 'say', ids: [65] }),
  });
  await using gateway = await startTestGateway(engine);
  const [busy, other] = [await gateway.open('busy.1'), await gateway.open('other.1')];
  const ask = (secret: string, text: string) => gateway.chat(secret, { messages: [{ role: 'user', content: text }] });
  const running = Array.from({ length: limits.turnsAtOnce }, (_, index) => ask(busy, `task ${index}`));
  await until(() => engine.running === limits.turnsAtOnce);
  const refused = await ask(busy, 'one more');
  assert.deepEqual(
    [refused.status, refused.headers['x-should-retry'], refused.json.error.code],
    [429, 'true', 'rate_limit_exceeded'],
  );
  assert.equal((await ask(other, 'x')).status, 200);
  await gateway.control.close('busy.1');
  for (const reply of await Promise.all(running)) assert.equal(reply.status, 410);
  assert.equal(engine.running, 0);
});
