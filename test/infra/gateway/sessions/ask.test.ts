import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OpenSession } from '../../../../infra/gateway/control.ts';
import { originOf } from '../../../../infra/gateway/http/request-origin.ts';
import { createSession } from '../../../../infra/gateway/sessions/session.ts';
import { createToolbox } from '../../../../infra/gateway/tools/toolbox.ts';
import { endlessLease } from '../../../../infra/hosts/lease.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { createSingleEngine } from '../../../helpers/engine/single-engine.ts';
import { openSession, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

type Encode = (text: string) => number[];

const saying = () => createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) });
const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });

/** Creates a session that encodes texts in another way than its gateway, without a journal on disk. */
function sessionOf({ model, options }: TestGateway, encode: Encode, opened: Partial<OpenSession> = {}) {
  const session = createSession(
    {
      policies: createSingleEngine(saying(), 1_000),
      upstreams: options.upstreams,
      lease: endlessLease,
      engineGraceMs: 1_000,
      onTurn: () => {},
      toolbox: createToolbox(),
      onHostToolFailure: () => {},
      onCutUnwritten: () => {},
      taskFiles: async () => new Map(),
      model: { ...model, tokens: { ...model.tokens, encode } },
    },
    {
      journal: { append: async () => {}, close: async () => {} },
      opened: { ...openSession('a.1'), ...opened },
      records: [],
    },
  );
  const asked = (text: string) =>
    session.ask(
      {
        conversation: { messages: [{ role: 'user', text }], tools: [] },
        maxTokens: null,
        sampling: {},
        delivery: 'whole',
      },
      originOf({}),
    );
  return { session, asked };
}

describe('a request to a session', () => {
  it('replays a reply that the context cut short, also at the turn limit', async () => {
    const engine = createScriptedEngine({
      script: ({ maxTokens }) => ({ kind: 'say', ids: Array(maxTokens).fill(65), cut: 'length' }),
      contextLength: 200,
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', { maxTurns: 1 });
    const long = ask('x'.repeat(160));
    const replies = [await gateway.chat(secret, long), await gateway.chatAgain(secret, { ...long, max_tokens: 400 })];
    await gateway.restart();
    replies.push(await gateway.chatAgain(secret, long));
    assert.deepEqual(
      replies.map(({ status, text }) => [status, text]),
      Array(3).fill([200, replies[0]?.text]),
    );
    assert.equal(engine.requests.length, 1);
    assert.ok((engine.requests[0]?.maxTokens ?? 200) < 40);
  });

  it('renders nothing for a request that the turn limit refuses', async () => {
    let encoded = 0;
    await using gateway = await startTestGateway(saying());
    const { tokens } = gateway.model;
    const encode = (text: string): number[] => {
      encoded += 1;
      return tokens.encode(text);
    };
    const { asked } = sessionOf(gateway, encode, { maxTurns: 1 });
    await (await asked('x')).turn.result;
    const before = encoded;
    await assert.rejects(asked('y'), { kind: 'turn-limit' });
    assert.deepEqual([before > 0, encoded - before], [true, 0]);
  });

  it('counts as a gateway failure when rendering fails, and cuts the session off unless a turn follows', async () => {
    await using gateway = await startTestGateway(saying());
    const { tokens } = gateway.model;
    const encode = (text: string): number[] =>
      text.includes('bug') ? assert.fail('a bug in temper') : tokens.encode(text);
    const { session, asked } = sessionOf(gateway, encode);
    await assert.rejects(asked('bug'), /a bug in temper/);
    assert.deepEqual([session.failures.count('gateway-failure'), session.failures.cutOff], [1, true]);
    await (await asked('x')).turn.result;
    assert.deepEqual([session.failures.count('gateway-failure'), session.failures.cutOff], [1, false]);
  });
});
