import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../../infra/agents/relay/socket-route.ts';
import { createScriptedEngine, type Step } from '../../../helpers/engine/scripted-engine.ts';
import { chunksOf, sendTo, startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

const ask = (text: string, more: object = {}) => ({ messages: [{ role: 'user', content: text }], ...more });
const bytes = (text: string): number[] => [...Buffer.from(text)];
const playing = (steps: readonly Step[]) =>
  createScriptedEngine({ script: (_, index) => steps[index] ?? { kind: 'fail', type: 'EngineUnavailable' } });

it('a session requests the version that it was opened for, and the control side reports the served ones', async () => {
  const engine = playing([{ kind: 'say', ids: [...bytes('Hi'), 258] }]);
  await using gateway = await startTestGateway({
    ...engine,
    health: async (signal) => ({ ...(await engine.health(signal)), version: 9, versions: [7, 9] }),
  });
  assert.deepEqual(await gateway.control.serving(null), { version: 9, versions: [7, 9] });
  await gateway.chat(await gateway.open('a.1', { policyVersion: 7 }), ask('x'));
  assert.deepEqual(
    engine.requests.map(({ policyVersion }) => policyVersion),
    [7],
  );
  const { promptTokens = 0, turns } = await gateway.control.seal('a.1');
  assert.ok(turns === 1 && promptTokens > 3, `${promptTokens} tokens sent`);
});

/** Waits for what the other side does next; fails by the test's own time limit. */
describe('an engine that aborts for a weight update', () => {
  it('is resumed inside the turn: one reply, each part with its own version, budget and seed', async () => {
    const engine = playing([
      { kind: 'say', ids: bytes('Hel'), version: 3, cut: 'abort' },
      { kind: 'say', ids: [], version: 4, cut: 'abort' },
      { kind: 'say', ids: [...bytes('lo'), 258], version: 4 },
    ]);
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const reply = await gateway.chat(secret, ask('x', { max_tokens: 10 }));
    assert.equal(reply.json.choices[0].message.content, 'Hello');
    const [first, second, third] = engine.requests;
    assert.deepEqual(third?.tokenIds, [...(first?.tokenIds ?? []), ...bytes('Hel')]);
    assert.deepEqual([first?.maxTokens, second?.maxTokens, third?.maxTokens], [10, 7, 7]);
    assert.notEqual(third?.seed, first?.seed);
    const summary = await gateway.control.seal('a.1');
    assert.deepEqual([summary.minVersion, summary.maxVersion, summary.turns], [3, 4, 1]);
    assert.equal(summary.counts?.aborts, 2);
    const { turns, segments } = await gateway.traceOf(summary);
    assert.deepEqual(turns[0]?.versions, [
      { version: 3, start: 0, end: 3 },
      { version: 4, start: 3, end: 6 },
    ]);
    const [segment] = segments;
    assert.deepEqual([segment?.aborts, turns[0]?.aborts], [2, 2]);
    assert.deepEqual(segment?.versions.slice(-6), [3, 3, 3, 4, 4, 4]);
    assert.deepEqual(segment?.logprobs.slice(-6), [-0.001, -0.002, -0.003, -0.001, -0.002, -0.003]);
  });

  it('gets another seed for its next part, and none where seeds are off', async () => {
    for (const seeds of [true, false]) {
      const engine = playing([
        { kind: 'say', ids: bytes('Hel'), cut: 'abort' },
        { kind: 'say', ids: bytes('lo') },
      ]);
      await using gateway = await startTestGateway(engine, { seeds });
      await gateway.chat(await gateway.open('a.1'), ask('x'));
      const [first, second] = engine.requests.map(({ seed }) => seed);
      assert.deepEqual([typeof first, first === second], seeds ? ['number', false] : ['undefined', true]);
    }
  });

  it('ends the reply with length when the budget is used up', async () => {
    const engine = playing([{ kind: 'say', ids: bytes('Hel'), cut: 'abort' }]);
    await using gateway = await startTestGateway(engine);
    const reply = await gateway.chat(await gateway.open('a.1'), ask('x', { max_tokens: 3 }));
    assert.equal(reply.json.choices[0].finish_reason, 'length');
  });
});

describe('an engine that is away', () => {
  it('is retried, and the tokens of a lost connection are sampled again', async () => {
    const engine = playing([
      { kind: 'fail', type: 'EngineUnavailable' },
      { kind: 'fail', ids: bytes('Bad'), type: 'EngineUnavailable' },
      { kind: 'say', ids: bytes('Good') },
    ]);
    await using gateway = await startTestGateway(engine);
    const reply = await gateway.chat(await gateway.open('a.1'), ask('x'));
    assert.equal(reply.json.choices[0].message.content, 'Good');
    const asked = engine.requests.map(({ seed, tokenIds }) => ({ seed, tokenIds }));
    assert.deepEqual(asked, [asked[0], asked[0], asked[0]], 'each time the whole turn, with its seed');
    assert.equal((await gateway.control.seal('a.1')).engineFailures, 0);
  });

  it('fails the turn after the grace period with a retryable error, counted unless a retry succeeds', async () => {
    const down = { kind: 'fail', type: 'EngineUnavailable' } as const;
    let step: Step = down;
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => step }), { engineGraceMs: 50 });
    const secret = await gateway.open('a.1');
    for (const text of ['x', 'y', 'x']) {
      const reply = await gateway.chat(secret, ask(text, { stream: text === 'y' }));
      assert.equal(reply.status, 503);
      assert.deepEqual([reply.headers['retry-after'], reply.headers['x-should-retry']], ['5', 'true']);
      assert.equal(reply.json.error.code, 'engine_unavailable');
    }
    step = { kind: 'say', ids: bytes('Good') };
    assert.equal((await gateway.chat(secret, ask('x'))).status, 200);
    await gateway.restart();
    assert.equal((await gateway.control.seal('a.1')).engineFailures, 1);
  });

  it('resumes an interrupted stream when it samples the same again, and otherwise fails it', async () => {
    const cases = [
      ['Hello', true],
      ['Howdy', false],
      ['He', false],
    ] as const;
    for (const [again, same] of cases) {
      const engine = playing([
        { kind: 'fail', ids: bytes('Hel'), type: 'EngineUnavailable' },
        { kind: 'say', ids: bytes(again) },
        { kind: 'say', ids: bytes(again) },
      ]);
      await using gateway = await startTestGateway(engine);
      const secret = await gateway.open('a.1');
      const reply = await gateway.chat(secret, ask('x', { stream: true }));
      const said = chunksOf(reply).map((chunk) => chunk.choices?.[0]?.delta.content ?? '');
      assert.equal(said.join('').slice(0, 3), 'Hel');
      assert.equal(reply.text.endsWith('data: [DONE]\n\n'), same);
      assert.equal(reply.text.includes('"error"'), !same);
      const retry = await gateway.chatAgain(secret, ask('x'));
      assert.equal(retry.json.choices[0].message.content, again);
      assert.equal((await gateway.control.seal('a.1')).turns, 1);
    }
  });

  it('fails the turn when its answer cannot be trained on, and nothing is recorded', async () => {
    const engine = playing([{ kind: 'fail', type: 'EngineInvalid' }]);
    await using gateway = await startTestGateway(engine);
    const relay = createProxy(createSocketRoute({ directory: gateway.options.sockets.agents, retryMs: 60_000 }));
    const socket = join(dirname(gateway.options.journalDir), 'relay.sock');
    await new Promise<void>((resolve) => relay.listen(socket, resolve));
    const headers = { authorization: `Bearer ${await gateway.open('a.1')}` };
    const body = JSON.stringify(ask('x'));
    const reply = await sendTo(socket, { method: 'POST', path: '/v1/chat/completions', headers, body });
    relay.close();
    assert.deepEqual([reply.status, reply.headers['x-should-retry']], [502, 'false']);
    assert.equal(reply.json.error.code, 'engine_invalid');
    const summary = await gateway.control.seal('a.1');
    assert.deepEqual([summary.turns, summary.engineFailures], [0, 1]);
    assert.equal(engine.requests.length, 1, 'neither the gateway nor the relay asks again');
  });
});

describe('a client that disconnects', () => {
  it('cancels its generation, and has no turn yet', async () => {
    const engine = playing([{ kind: 'hang', ids: bytes('Hel') }]);
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const leaving = new AbortController();
    const left = assert.rejects(gateway.chat(secret, ask('x', { stream: true }), leaving.signal));
    await until(() => engine.running === 1);
    leaving.abort();
    await left;
    await until(() => engine.running === 0);
    await until(async () => (await gateway.control.status('a.1'))?.inFlight === 0);
    assert.equal((await gateway.control.status('a.1'))?.turns, 0);
  });

  it('does not end the turn for another client with the same request: one turn, one generation', async () => {
    let answer: (step: Step) => void = () => {};
    const engine = createScriptedEngine({
      script: () =>
        new Promise<Step>((resolve) => {
          answer = resolve;
        }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const leaving = new AbortController();
    const headers = { 'x-temper-request': 'r-1' };
    const left = assert.rejects(gateway.chatAgain(secret, ask('x'), headers, leaving.signal));
    const whole = gateway.chatAgain(secret, ask('x'), headers);
    const streamed = gateway.chatAgain(secret, ask('x', { stream: true }), headers);
    await until(() => engine.running === 1);
    await sleep(20);
    leaving.abort();
    await left;
    await sleep(20);
    answer({ kind: 'say', ids: bytes('Hello') });
    assert.equal((await whole).json.choices[0].message.content, 'Hello');
    const said = chunksOf(await streamed).map((chunk) => chunk.choices[0]?.delta.content ?? '');
    assert.equal(said.join(''), 'Hello');
    assert.equal(engine.requests.length, 1);
    assert.equal((await gateway.control.seal('a.1')).turns, 1);
  });
});

describe('sealing and closing', () => {
  it('cancel running turns', async () => {
    const engine = playing([{ kind: 'hang' }]);
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const asked = gateway.chat(secret, ask('x'));
    await until(() => engine.running === 1);
    const summary = await gateway.control.seal('a.1');
    assert.equal((await asked).status, 410);
    assert.deepEqual([summary.turns, engine.running], [0, 0]);
  });
});

describe('a stream', () => {
  it('is kept alive while the engine sends nothing', async () => {
    let answer: (step: Step) => void = () => {};
    const engine = createScriptedEngine({
      script: () =>
        new Promise<Step>((resolve) => {
          answer = resolve;
        }),
    });
    await using gateway = await startTestGateway(engine);
    const asked = gateway.chat(await gateway.open('a.1'), ask('x', { stream: true }));
    await until(() => engine.running === 1);
    await sleep(3_200);
    answer({ kind: 'say', ids: bytes('Hello') });
    const { text } = await asked;
    assert.ok(text.indexOf(': keep-alive') > 0 && text.indexOf(': keep-alive') < text.indexOf('"H"'), text);
  });
});
