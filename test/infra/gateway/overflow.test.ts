import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../helpers/gateway/gateway.ts';

const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const long = 'x'.repeat(300);

/** Whether the session counts as one that ended at the context's length, of requests in this order; `/` restarts the gateway. */
async function endedTooLong(...texts: readonly string[]): Promise<boolean> {
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: 200 });
  await using gateway: TestGateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  for (const text of texts) {
    if (text === '/') await gateway.restart();
    else assert.equal((await gateway.chat(secret, ask(text))).status, text.length < 200 ? 200 : 400);
  }
  return (await gateway.control.seal('a.1')).contextOverflow;
}

describe('a conversation that became too long', () => {
  it('ended the session when nothing came after it', async () => {
    assert.equal(await endedTooLong('1', long), true);
    assert.equal(await endedTooLong('1', long, long, '/'), true);
  });

  it('did not when the agent compacted it and went on', async () => {
    assert.equal(await endedTooLong('1', long, '2'), false);
    assert.equal(await endedTooLong('1', long, '/', '2', '/'), false);
  });

  it('did so in the end when it came again, or another one did', async () => {
    assert.equal(await endedTooLong('1', long, '2', long), true);
    assert.equal(await endedTooLong('1', long, '2', '/', long, '/'), true);
    assert.equal(await endedTooLong('1', long, '2', `${long}y`), true);
  });

  it('did so although a side call was still answered that had begun before', async () => {
    const answer = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const engine = createScriptedEngine({
      contextLength: 200,
      async script() {
        asked.resolve();
        await answer.promise;
        return { kind: 'say', ids: [65] };
      },
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const side = gateway.chat(secret, ask('1'));
    await asked.promise;
    // The clock has to have gone on: what begins in the millisecond of the overflow counts as begun after it.
    for (const at = Date.now(); Date.now() === at; ) await new Promise(setImmediate);
    assert.equal((await gateway.chat(secret, ask(long))).status, 400);
    answer.resolve();
    assert.equal((await side).status, 200);
    assert.equal((await gateway.control.seal('a.1')).contextOverflow, true);
  });
});
