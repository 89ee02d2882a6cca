import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createGatewayControl } from '../../../../infra/gateway/client.ts';
import { createSecretCheck, secretOf } from '../../../../infra/gateway/secret.ts';
import { startGateway } from '../../../../infra/gateway/server.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { createSingleEngine } from '../../../helpers/engine/single-engine.ts';
import { openSession, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const saying = () => createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) });
const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });

describe('a secret', () => {
  it('opens its own session and no other', async () => {
    const engine = saying();
    await using gateway = await startTestGateway(engine);
    const mine = await gateway.open('mine.1');
    const theirs = await gateway.open('theirs.1');
    const forged = `theirs.1~${mine.split('~')[1]}`;
    const never = secretOf(gateway.options.stackKeys[0], 'never.1');
    const cases: readonly (readonly [string, number])[] = [
      ['', 401],
      [' ', 401],
      ['~', 401],
      [forged, 401],
      [`${mine}x`, 401],
      [mine.slice(0, -1), 401],
      [never, 401],
      [secretOf(gateway.options.stackKeys[0], '../../etc/passwd'), 401],
      [mine, 200],
    ];
    for (const [secret, status] of cases) {
      const reply = await gateway.chat(secret, ask('x'));
      assert.equal(reply.status, status, secret);
      if (status !== 200) assert.equal(typeof reply.json.error.message, 'string');
    }
    assert.equal(engine.requests.length, 1);
    assert.equal((await gateway.control.status('theirs.1'))?.turns, 0);
    assert.equal(createSecretCheck(gateway.options.stackKeys)(theirs), 'theirs.1');
    const long = await gateway.send({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: 'Bearer no' },
      body: Buffer.alloc(2_000_000, 'x'),
    });
    assert.equal(long.status, 401);
  });

  it('is refused once its session is closed, sealed or expired', async () => {
    await using gateway = await startTestGateway(saying());
    const closed = await gateway.open('closed.1');
    const sealed = await gateway.open('sealed.1');
    const expired = await gateway.open('expired.1', { expiresAt: Date.now() - 1 });
    await gateway.control.close('closed.1');
    await gateway.control.seal('sealed.1');
    for (const secret of [closed, sealed, expired]) {
      const reply = await gateway.chat(secret, ask('x'));
      assert.deepEqual(
        [reply.status, reply.json.error.code, reply.headers['x-should-retry']],
        [410, 'session_closed', 'false'],
      );
    }
    assert.equal((await gateway.control.status('closed.1'))?.state, 'closed');
    assert.equal((await gateway.control.status('sealed.1'))?.state, 'sealed');
    assert.equal(await gateway.control.status('never.1'), null);
  });
});

describe('the control side', () => {
  it('is out of reach of agents: it has its own socket, in a directory that only its user can enter', async () => {
    await using gateway = await startTestGateway(saying());
    const secret = await gateway.open('a.1');
    const { agents, control } = gateway.options.sockets;
    assert.equal((await stat(join(agents, 'gateway.sock'))).mode & 0o666, 0o666);
    assert.equal((await stat(control)).mode & 0o077, 0);
    for (const path of ['/open', '/seal/a.1', '/close/a.1', '/status/a.1', '/health', '/min-versions']) {
      const reply = await gateway.send({
        method: 'POST',
        path,
        headers: { authorization: `Bearer ${secret}` },
        body: '{}',
      });
      assert.equal(reply.status, 404, path);
    }
    assert.equal((await gateway.control.status('a.1'))?.state, 'open');
  });

  it('opens a session once, and reports unknown sessions and invalid input', async () => {
    await using gateway = await startTestGateway(saying());
    const secret = await gateway.open('a.1');
    await gateway.chat(secret, ask('x'));
    await Promise.all([
      gateway.open('a.1', { maxTurns: 1 }),
      gateway.open('a.1'),
      gateway.open('b.1'),
      gateway.open('b.1'),
    ]);
    assert.equal((await gateway.control.status('a.1'))?.turns, 1);
    await assert.rejects(gateway.control.seal('never.1'), { type: 'BlobMissing', message: /never\.1/ });
    await assert.rejects(gateway.control.open({ ...openSession('../x') }), { type: 'InvalidInput' });
    await assert.rejects(gateway.control.open({ ...openSession('x'), maxTurns: 0 }), {
      type: 'InvalidInput',
      message: /maxTurns/,
    });
  });

  it('fails with GatewayUnavailable when it is away', async () => {
    const control = createGatewayControl(['/nowhere/gateway.sock']);
    await assert.rejects(control.status('a.1'), { type: 'GatewayUnavailable', message: /nowhere/ });
    assert.equal(await control.health(), false);
    await assert.rejects(control.status('a.1', AbortSignal.abort(new Error('stop'))), /stop/);
    await control.end();
  });

  it('refuses a second gateway on its sockets, and replaces the sockets of a dead one', async () => {
    const engine = saying();
    await using gateway = await startTestGateway(engine);
    const again = { ...gateway.options, policies: createSingleEngine(engine, 1_000), log: () => {} };
    await assert.rejects(startGateway(again), { type: 'GatewayUnavailable', message: /another gateway/ });
    await gateway.restart();
    assert.equal(await gateway.control.health(), true);
  });

  it('knows the smallest version of each group, also of sealed sessions and after a restart', async () => {
    let version = 5;
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65], version: version++ }) });
    await using gateway = await startTestGateway(engine);
    const first = await gateway.open('a.1', { group: 'run/1' });
    const second = await gateway.open('b.1', { group: 'run/1' });
    await gateway.open('c.1', { group: 'run/2' });
    await gateway.chat(first, ask('x'));
    await gateway.chat(second, ask('y'));
    await gateway.control.seal('a.1');
    const groups = ['run/2', 'run/1', 'run/3'];
    assert.deepEqual(await gateway.control.minVersions(groups), [null, 5, null]);
    await gateway.restart();
    assert.deepEqual(await gateway.control.minVersions(groups), [null, 5, null]);
  });
});

describe('a session', () => {
  it('ends at its turn limit and at the context length, each with the code that clients expect', async () => {
    await using gateway = await startTestGateway(
      createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: 200 }),
    );
    const secret = await gateway.open('a.1', { maxTurns: 2 });
    assert.equal((await gateway.chat(secret, ask('1'))).status, 200);
    const overflow = await gateway.chat(secret, ask('x'.repeat(300)));
    assert.deepEqual(
      [overflow.status, overflow.json.error.code, overflow.headers['x-should-retry']],
      [400, 'context_length_exceeded', 'false'],
    );
    assert.equal((await gateway.chat(secret, ask('2'))).status, 200);
    for (const text of ['3', '3', '4']) {
      const limit = await gateway.chat(secret, ask(text));
      assert.deepEqual(
        [limit.status, limit.json.error.code, limit.headers['x-should-retry']],
        [403, 'turn_limit', 'false'],
      );
    }
    assert.equal((await gateway.chatAgain(secret, ask('2'))).status, 200, 'what was answered is given again');
    await gateway.restart();
    const summary = await gateway.control.seal('a.1');
    assert.deepEqual([summary.turns, summary.turnLimit, summary.contextOverflow], [2, true, false]);
  });

  it('ends when its token budget is used up, and still replays answered requests', async () => {
    await using gateway = await startTestGateway(
      createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) }),
    );
    // Two tokens a turn: the second one reaches the budget.
    const secret = await gateway.open('a.1', { maxSampledTokens: 4 });
    for (const text of ['1', '2']) assert.equal((await gateway.chat(secret, ask(text))).status, 200);
    assert.equal((await gateway.chatAgain(secret, ask('1'))).status, 200);
    await gateway.restart();
    const { status, json, headers } = await gateway.chat(secret, ask('3'));
    assert.deepEqual([status, json.error.code, headers['x-should-retry']], [403, 'token_budget', 'false']);
    const { turns, turnLimit, tokenBudget } = await gateway.control.seal('a.1');
    assert.deepEqual([turns, turnLimit, tokenBudget], [2, false, true]);
  });

  it('answers a request that comes several times at once with one turn, also right after a restart', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }), delayMs: 2 });
    await using gateway = await startTestGateway(engine);
    const sessions = Array.from({ length: 8 }, (_, index) => `s${index}.1`);
    const secrets = await Promise.all(sessions.map((session) => gateway.open(session)));
    await gateway.restart();
    const calls = secrets.flatMap((secret) =>
      [1, 2, 3, 4].map(() => gateway.chatAgain(secret, ask('10'), { 'x-temper-request': 'r-1' })),
    );
    for (const reply of await Promise.all(calls)) assert.equal(reply.json.choices[0].message.content, 'AB');
    for (const session of sessions) assert.equal((await gateway.control.seal(session)).turns, 1);
  });

  it('samples again when a client asks for more tokens than a reply that reached its limit', async () => {
    const engine = createScriptedEngine({
      script: ({ maxTokens }) =>
        maxTokens < 3 ? { kind: 'say', ids: [65, 66], cut: 'length' } : { kind: 'say', ids: [65, 66, 67] },
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const texts: string[] = [];
    for (const max_tokens of [2, 2, 9, 9]) {
      const reply = await gateway.chatAgain(secret, { ...ask('10'), max_tokens });
      texts.push(reply.json.choices[0].message.content);
    }
    assert.deepEqual(texts, ['AB', 'AB', 'ABC', 'ABC']);
    assert.equal((await gateway.control.seal('a.1')).turns, 2);
  });

  it('samples with its own parameters, whatever a client asks for in any dialect', async () => {
    const engine = saying();
    await using gateway = await startTestGateway(engine);
    const sampling = { temperature: 0.7, topP: 0.9, topK: 5, maxTokensPerTurn: 8 };
    const secret = await gateway.open('a.1', { sampling });
    const wilful = { temperature: 0, top_p: 0.1, top_k: 1, seed: 3, stop: ['A'], stop_sequences: ['A'] };
    await gateway.chat(secret, { ...ask('x'), ...wilful });
    await gateway.post('/v1/messages', secret, { ...ask('y'), ...wilful, max_tokens: 9 });
    await gateway.post('/v1/responses', secret, { input: 'z', ...wilful });
    assert.equal(engine.requests.length, 3);
    for (const { temperature, topP, topK, maxTokens, seed, stopTokenIds } of engine.requests) {
      assert.deepEqual({ temperature, topP, topK, maxTokensPerTurn: maxTokens }, sampling);
      assert.deepEqual(stopTokenIds, gateway.model.stopTokenIds);
      assert.notEqual(seed, wilful.seed);
    }
  });

  it('loses nothing when it is closed before it is sealed, and another epoch has its own session', async () => {
    await using gateway = await startTestGateway(saying());
    const first = await gateway.open('a.1');
    assert.equal((await gateway.chat(first, ask('x'))).status, 200);
    await gateway.control.close('a.1');
    const second = await gateway.open('a.2');
    assert.equal((await gateway.chat(second, ask('x'))).status, 200);
    assert.equal((await gateway.chat(first, ask('x'))).status, 410);
    for (const session of ['a.1', 'a.2']) assert.equal((await gateway.control.seal(session)).turns, 1);
  });

  it('ends its turns before a closing gateway releases it', async () => {
    const engine = createScriptedEngine({
      script: ({ tokenIds }) => ({ kind: 'say', ids: tokenIds.includes(57) ? Array(40).fill(65) : [66] }),
      chunk: 1,
      delayMs: 5,
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    const slow = gateway.chat(secret, ask('9'));
    await gateway.chat(secret, ask('1'));
    const stopped = gateway.restart();
    assert.equal((await slow).status, 200);
    await stopped;
    assert.equal((await gateway.control.seal('a.1')).turns, 2);
  });

  it('is sealed with the branch rule that it was opened with, also after a restart', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1', {
      branches: { train: 'final', maxSegments: null, maxSegmentTokens: null },
    });
    for (const text of ['x', 'y']) await gateway.chat(secret, ask(text));
    await gateway.restart();
    const { segments, counts } = await gateway.control.seal('a.1');
    assert.deepEqual([segments, counts?.dropped, counts?.droppedTokens, counts?.unclear], [1, 1, 1, 1]);
    await assert.rejects(gateway.control.open({ ...openSession('b.1'), branches: { train: 'some' } as never }), {
      type: 'InvalidInput',
    });
  });

  it('answers simultaneous requests, each on its own branch', async () => {
    const engine = createScriptedEngine({
      script: ({ tokenIds }) => ({ kind: 'say', ids: [...tokenIds.slice(6, 8), 66] }),
      delayMs: 2,
    });
    await using gateway = await startTestGateway(engine);
    const sessions = ['a.1', 'b.1'];
    const secrets = await Promise.all(sessions.map((session) => gateway.open(session)));
    const texts = Array.from({ length: 12 }, (_, index) => String(10 + index));
    const replies = await Promise.all(
      secrets.flatMap((secret) => texts.map((text) => gateway.chat(secret, ask(text)))),
    );
    for (const [index, reply] of replies.entries()) {
      assert.equal(reply.json.choices[0].message.content, `${texts[index % texts.length]}B`);
    }
    for (const session of sessions) {
      const summary = await gateway.control.seal(session);
      const trace = await gateway.traceOf(summary);
      assert.deepEqual([summary.turns, summary.segments, trace.forks], [12, 12, 11]);
      assert.deepEqual(
        trace.turns.map(({ index }) => index),
        [...texts.keys()],
      );
    }
  });
});
