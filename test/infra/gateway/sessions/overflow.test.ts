import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

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

describe('a conversation that became too long for the context', () => {
  it('counts as the end of the session when no turn follows', async () => {
    assert.equal(await endedTooLong('1', long), true);
    assert.equal(await endedTooLong('1', long, long, '/'), true);
  });

  it('does not count when the agent compacts it and continues', async () => {
    assert.equal(await endedTooLong('1', long, '2'), false);
    assert.equal(await endedTooLong('1', long, '/', '2', '/'), false);
  });

  it('counts when it, or another one, fails again later', async () => {
    assert.equal(await endedTooLong('1', long, '2', long), true);
    assert.equal(await endedTooLong('1', long, '2', '/', long, '/'), true);
    assert.equal(await endedTooLong('1', long, '2', `${long}y`), true);
  });

  it('counts although a side call that began earlier is answered afterwards', async () => {
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
    // Waits for the clock: a turn that begins in the millisecond of the overflow counts as begun after it.
    for (const at = Date.now(); Date.now() === at; ) await new Promise(setImmediate);
    assert.equal((await gateway.chat(secret, ask(long))).status, 400);
    answer.resolve();
    assert.equal((await side).status, 200);
    assert.equal((await gateway.control.seal('a.1')).contextOverflow, true);
  });
});

describe('a conversation that is certainly too long for the context', () => {
  it('is refused before it is encoded, also where its tokens are to be counted, and counts as too long', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: 200 });
    await using gateway = await startTestGateway(engine);
    const tokens = gateway.model.tokens as { encode(text: string): number[] };
    const encode = tokens.encode.bind(tokens);
    const encoded: number[] = [];
    tokens.encode = (text) => {
      encoded.push(text.length);
      return encode(text);
    };
    const secret = await gateway.open('a.1');
    const body = ask('y'.repeat(300_000));
    const refused = await gateway.chat(secret, body);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /maximum context length is 200 tokens/);
    const counted = await gateway.post('/v1/messages/count_tokens', secret, { model: 'm', ...body });
    assert.equal(counted.status, 400, counted.text);
    assert.deepEqual(
      encoded.filter((length) => length > 10_000),
      [],
    );
    assert.equal((await gateway.control.seal('a.1')).contextOverflow, true);
  });
});
