import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../../infra/agents/relay/socket-route.ts';
import { originOf } from '../../../../infra/gateway/http/request-origin.ts';
import { limits } from '../../../../infra/gateway/limits.ts';
import { createScriptedEngine, type Step } from '../../../helpers/engine/scripted-engine.ts';
import {
  openSession,
  type Reply,
  sendTo,
  startTestGateway,
  type TestGateway,
} from '../../../helpers/gateway/gateway.ts';
import { sessionsIn } from '../../../helpers/gateway/sessions-in.ts';
import { until } from '../../../helpers/until.ts';

const user = (content: string) => ({ role: 'user', content });
const hello = { messages: [user('hello')] };
/** Each sample says another letter. */
const letters = () => createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: [65 + index] }) });
const said = ({ json }: Reply): string => json.choices[0].message.content;
const idOf = ({ json }: Reply): string => json.id;
const named = (request: string, ...unread: string[]) => ({
  'x-temper-request': request,
  'x-temper-unread': unread.join(','),
});

/** Puts the relay of a sandbox before a gateway. */
async function relayBefore(t: TestContext, gateway: TestGateway) {
  const relay = createProxy(createSocketRoute({ directory: gateway.options.sockets.agents, retryMs: 60_000 }));
  const socket = join(dirname(gateway.options.journalDir), 'relay.sock');
  await new Promise<void>((resolve) => relay.listen(socket, resolve));
  t.after(() => relay.close());
  return (secret: string, body: object, signal?: AbortSignal): Promise<Reply> =>
    sendTo(socket, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${secret}` },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
}

describe('a second request for a conversation that was answered', () => {
  it('is a turn of its own: sampled with another seed, journaled, counted, and a branch that can be continued', async () => {
    const engine = letters();
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', { maxTurns: 4 });
    const first = await gateway.chat(secret, hello);
    const second = await gateway.chat(secret, hello);
    assert.deepEqual([said(first), said(second)], ['A', 'B']);
    assert.notEqual(idOf(first), idOf(second));
    const [one, two] = engine.requests;
    assert.notEqual(one?.seed, two?.seed);
    for (const [answer, next] of ['A', 'B'].entries()) {
      const messages = [...hello.messages, { role: 'assistant', content: next }, user('continue')];
      assert.equal(said(await gateway.chat(secret, { messages })), 'CD'[answer]);
    }
    assert.equal((await gateway.chat(secret, hello)).status, 403, 'it counts in the turn limit');
    await gateway.restart();
    const summary = await gateway.control.seal('a.1');
    const trace = await gateway.traceOf(summary);
    assert.deepEqual([summary.turns, summary.segments, summary.turnLimit], [4, 2, true]);
    assert.deepEqual(
      trace.turns.map(({ parent, sample }) => [parent, sample]),
      [
        [null, undefined],
        [null, 2],
        [0, undefined],
        [1, undefined],
      ],
    );
    assert.deepEqual(
      trace.branches.map(({ kind, turns }) => [kind, turns]),
      [
        ['main', 2],
        ['fork', 2],
      ],
    );
  });

  it('is a turn of its own while the first one runs, also of equal requests that come together', async () => {
    const answer = Promise.withResolvers<void>();
    const engine = createScriptedEngine({
      async script(_, index): Promise<Step> {
        await answer.promise;
        return { kind: 'say', ids: [65 + index] };
      },
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const replies = [1, 2, 3].map(() => gateway.chat(secret, hello));
    await until(() => engine.running === 3);
    answer.resolve();
    assert.deepEqual((await Promise.all(replies)).map(said).sort(), ['A', 'B', 'C']);
    assert.equal((await gateway.control.seal('a.1')).turns, 3);
  });

  it('is a turn of its own before the response to the first one begins', async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-samples-'));
    try {
      const sessions = await sessionsIn(home, home);
      await sessions.open(openSession('a.1'));
      const session = await sessions.find('a.1');
      assert.ok(session !== null && 'ask' in session);
      const conversation = { messages: [{ role: 'user' as const, text: 'hello' }], tools: [] };
      const request = { conversation, delivery: 'whole', maxTokens: null, sampling: {} } as const;
      const asked = await Promise.all([1, 2, 3].map(() => session.ask(request, originOf({}))));
      const turns = await Promise.all(asked.map(({ turn }) => turn.result));
      assert.deepEqual([new Set(turns.map(({ sample }) => sample)).size, session.retries], [3, 0]);
      for (const { leave } of asked) leave(true);
      await sessions.release();
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  it('is the same turn if its client marks it as a retry', async () => {
    const engine = letters();
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const keyed = (key: string) => gateway.chatAgain(secret, hello, { 'idempotency-key': key });
    assert.equal(said(await keyed('one')), 'A');
    assert.equal(said(await keyed('two')), 'B');
    await gateway.restart();
    assert.deepEqual([said(await keyed('one')), said(await keyed('two'))], ['A', 'B']);
    assert.equal(said(await gateway.chatAgain(secret, hello)), 'B', 'a counted retry is of the last one');
    assert.equal(said(await gateway.chatAgain(secret, hello, { 'x-stainless-retry-count': '0' })), 'C');
    const { turns, retries } = await gateway.control.seal('a.1');
    assert.deepEqual([turns, retries], [3, 3]);
  });

  it('is a turn of its own if its client retries what got no turn, because too many ran', async () => {
    const stop = Promise.withResolvers<void>();
    const engine = createScriptedEngine({
      async script({ tokenIds }, index): Promise<Step> {
        if (tokenIds.includes('9'.charCodeAt(0))) await stop.promise;
        return { kind: 'say', ids: [65 + index] };
      },
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    assert.equal(said(await gateway.chat(secret, hello)), 'A');
    const running = Array.from({ length: limits.turnsAtOnce }, (_, at) =>
      gateway.chat(secret, { messages: [user(`9 ${at}`)] }),
    );
    await until(() => engine.running === limits.turnsAtOnce);
    assert.equal((await gateway.chat(secret, hello)).status, 429);
    stop.resolve();
    await Promise.all(running);
    assert.notEqual(said(await gateway.chatAgain(secret, hello)), 'A');
  });
});

describe('a request that its relay sends again', () => {
  it('is the same turn, and another request of the agent beside it is not', async () => {
    const engine = letters();
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const ask = (name: string) => gateway.chatAgain(secret, hello, named(name));
    const replies = await Promise.all(['r-1', 'r-2', 'r-1', 'r-2'].map(ask));
    const [one, two] = replies.map(said);
    assert.deepEqual([new Set([one, two]).size, ...replies.map(said)], [2, one, two, one, two]);
    await gateway.restart();
    assert.deepEqual([said(await ask('r-1')), said(await ask('r-2'))], [one, two]);
    assert.equal((await gateway.control.seal('a.1')).turns, 2);
  });

  it('carries one name, and names that of an earlier request whose client left before it had the reply', async (t) => {
    const engine = createScriptedEngine({
      script: (_, index) => (index === 0 ? { kind: 'hang' } : { kind: 'say', ids: [66] }),
    });
    await using gateway = await startTestGateway(engine);
    const ask = await relayBefore(t, gateway);
    const secret = await gateway.open('a.1');
    const leaving = new AbortController();
    const left = assert.rejects(ask(secret, hello, leaving.signal));
    await until(() => engine.running === 1);
    const other = ask(secret, hello);
    assert.equal(said(await other), 'B', 'another client asks for a sample of its own');
    leaving.abort();
    await left;
    await until(() => engine.running === 0);
    // A client that marks no retries: the reply of its request was never delivered.
    const [request] = engine.requests;
    const retried = ask(secret, hello);
    assert.equal(said(await retried), 'B');
    assert.equal(engine.requests.length, 3);
    assert.equal(engine.requests[2]?.seed, request?.seed, 'it is the turn that was given up');
    assert.equal((await gateway.control.seal('a.1')).turns, 2);
  });
});

describe('a reply that no client has got whole', () => {
  it('is given again to a client that does not mark its retry', async () => {
    await using gateway = await startTestGateway(letters());
    const secret = await gateway.open('a.1');
    const ask = (...names: [string, ...string[]]) => gateway.chatAgain(secret, hello, named(...names));
    assert.equal(said(await ask('r-1')), 'A');
    assert.equal(said(await ask('r-2', 'r-1')), 'A', 'the gateway has sent it, and the relay has lost its client');
    assert.equal(said(await ask('r-3', 'r-1')), 'B', 'the second client has got it');
    await gateway.restart();
    assert.equal(said(await ask('r-4', 'r-1')), 'C', 'the journal says so');
    assert.equal((await gateway.control.seal('a.1')).turns, 3);
  });

  it('counts as lost when a gateway was killed, unless a later turn continues it', async () => {
    await using gateway = await startTestGateway(letters());
    const killed = async (session: string): Promise<void> => {
      const journal = join(gateway.options.journalDir, `${session}.jsonl`);
      await copyFile(journal, `${journal}.killed`);
      await gateway.stop();
      await copyFile(`${journal}.killed`, journal);
      await gateway.restart();
    };
    const secret = await gateway.open('a.1');
    assert.equal(said(await gateway.chat(secret, hello)), 'A');
    await killed('a.1');
    assert.equal(said(await gateway.chat(secret, hello)), 'A');
    const messages = [...hello.messages, { role: 'assistant', content: 'A' }, user('continue')];
    assert.equal(said(await gateway.chat(secret, { messages })), 'B');
    await killed('a.1');
    assert.equal(said(await gateway.chat(secret, hello)), 'C');
    await killed('a.1');
    assert.equal(said(await gateway.chat(secret, hello)), 'C', 'the second sample is the one that may be lost');
    assert.equal((await gateway.control.seal('a.1')).turns, 3);
  });
});
