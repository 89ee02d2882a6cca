import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSession } from '../../../../infra/gateway/sessions/session.ts';
import { createToolbox } from '../../../../infra/gateway/tools/toolbox.ts';
import type { PolicyEngines } from '../../../../infra/gateway/turns/policy-engines.ts';
import { endlessLease } from '../../../../infra/hosts/lease.ts';
import { createScriptedEngine, type ScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { openSession, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const saying = () => createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) });
const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });

const contextLength = { wait: async () => 100_000, look: async () => 100_000 };
const served = (engine: ScriptedEngine): PolicyEngines => ({
  of: async () => ({ engine, contextLength }),
  close: async () => {},
});

describe('a request to a session', () => {
  it('replays a reply that the context cut short, also at the turn limit', async () => {
    const engine = createScriptedEngine({
      script: ({ maxTokens }) => ({ kind: 'say', ids: Array(maxTokens).fill(65), cut: 'length' }),
      contextLength: 200,
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', { maxTurns: 1 });
    const long = ask('x'.repeat(160));
    const replies = [await gateway.chat(secret, long), await gateway.chat(secret, { ...long, max_tokens: 400 })];
    await gateway.restart();
    replies.push(await gateway.chat(secret, long));
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
    const session = createSession(
      {
        policies: served(saying()),
        upstreams: gateway.options.upstreams,
        lease: endlessLease,
        engineGraceMs: 1_000,
        onTurn: () => {},
        toolbox: createToolbox(),
        onHostToolFailure: () => {},
        taskFiles: async () => new Map(),
        model: { ...gateway.model, tokens: { ...tokens, encode } },
      },
      {
        journal: { append: async () => {}, close: async () => {} },
        opened: { ...openSession('a.1'), maxTurns: 1 },
        records: [],
      },
    );
    const asked = (text: string) =>
      session.ask({
        conversation: { messages: [{ role: 'user', text }], tools: [] },
        maxTokens: null,
        sampling: {},
        delivery: 'whole',
      });
    await (await asked('x')).result;
    const before = encoded;
    await assert.rejects(asked('y'), { kind: 'turn-limit' });
    assert.deepEqual([before > 0, encoded - before], [true, 0]);
  });

  it('counts as a gateway failure when rendering fails, and cuts the session off unless a turn follows', async () => {
    await using gateway = await startTestGateway(saying());
    const { tokens } = gateway.model;
    const encode = (text: string): number[] =>
      text.includes('bug') ? assert.fail('a bug in temper') : tokens.encode(text);
    const session = createSession(
      {
        policies: served(saying()),
        upstreams: gateway.options.upstreams,
        lease: endlessLease,
        engineGraceMs: 1_000,
        onTurn: () => {},
        toolbox: createToolbox(),
        onHostToolFailure: () => {},
        taskFiles: async () => new Map(),
        model: { ...gateway.model, tokens: { ...tokens, encode } },
      },
      {
        journal: { append: async () => {}, close: async () => {} },
        opened: openSession('a.1'),
        records: [],
      },
    );
    const asked = (text: string) =>
      session.ask({
        conversation: { messages: [{ role: 'user', text }], tools: [] },
        maxTokens: null,
        sampling: {},
        delivery: 'whole',
      });
    await assert.rejects(asked('bug'), /a bug in temper/);
    assert.deepEqual([session.failed('gateway-failure'), session.cutOff], [1, true]);
    await (await asked('x')).result;
    assert.deepEqual([session.failed('gateway-failure'), session.cutOff], [1, false]);
  });
});
