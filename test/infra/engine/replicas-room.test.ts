import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import type { EngineCapacity, GenerateRequest } from '../../../infra/engine/engine.ts';
import { promptOf } from '../../../infra/engine/prompt.ts';
import { ranked } from '../../../infra/engine/replicas/ranking.ts';
import { createRoom } from '../../../infra/engine/replicas/room.ts';
import { createReplicas, type ReplicasOptions } from '../../../infra/engine/replicas.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { createScriptedReplica, type ScriptedReplica } from '../../helpers/engine/replica.ts';
import { until } from '../../helpers/until.ts';

const never = new AbortController().signal;
const hanging = () => ({ kind: 'hang', ids: [65] }) as const;

function request(session: string, more: Partial<GenerateRequest> = {}): GenerateRequest {
  const sampling = { maxTokens: 4, temperature: 1, topP: 1, topK: -1, stopTokenIds: [] };
  return { requestId: `${session}-0`, session, prompt: promptOf([1, 2]), ...sampling, ...more };
}

function over(t: TestContext, engines: readonly ScriptedReplica[], requestsAtOnce: ReplicasOptions['requestsAtOnce']) {
  const replicas = createReplicas(engines, { requestsAtOnce, probeMs: 3_600_000 });
  t.after(() => replicas.close());
  return replicas;
}

describe('room', () => {
  const count = (
    requestsAtOnce: number | null,
    capacity: EngineCapacity | undefined,
    one: GenerateRequest,
    sharers = 1,
  ): number => {
    const room = createRoom({ requestsAtOnce, sharers }, () => capacity);
    let taken = 0;
    while (taken < 1_000 && room.take(one) !== null) taken += 1;
    return taken;
  };
  const big = request('s', { prompt: promptOf(Array(100).fill(1)), maxTokens: 100 });
  const cases: readonly (readonly [string, number | null, EngineCapacity | undefined, GenerateRequest, number])[] = [
    ['is what the setting says', 3, { requests: 9, kvTokens: 100 }, big, 3],
    ['is the engine’s batch', null, { requests: 9, kvTokens: null }, big, 9],
    ['is what its KV cache holds', null, { requests: null, kvTokens: 1_100 }, big, 5],
    ['is the smaller of both', null, { requests: 2, kvTokens: 1_100 }, big, 2],
    [
      'counts no more tokens than can be foreseen',
      null,
      { requests: null, kvTokens: 8_392 },
      { ...big, maxTokens: 50_000 },
      2,
    ],
    ['takes one request, however large, when idle', null, { requests: null, kvTokens: 10 }, big, 1],
    ['has a bound where the engine says nothing', null, undefined, big, 256],
  ];
  for (const [what, setting, capacity, one, expected] of cases) {
    it(what, () => assert.equal(count(setting, capacity, one), expected));
  }

  it('is divided among those who ask the same engine, with one request for each at least', () => {
    assert.equal(count(8, undefined, big, 2), 4);
    assert.equal(count(null, { requests: 9, kvTokens: 1_600 }, big, 2), 4);
    assert.equal(count(null, undefined, big, 4), 64);
    assert.equal(count(1, undefined, big, 2), 1);
  });

  it('is what it was when all have left, whoever left twice', () => {
    const room = createRoom({ requestsAtOnce: 2 }, () => undefined);
    const [first, second] = [room.take(big), room.take(big)];
    assert.equal(room.take(big), null);
    first?.();
    first?.();
    assert.notEqual(room.take(big), null);
    assert.equal(room.take(big), null);
    second?.();
    assert.notEqual(room.take(big), null);
  });
});

it('a replica that goes moves its own sessions alone, whatever they are called', () => {
  const names = fc.uniqueArray(fc.webUrl(), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(names, fc.string(), fc.nat(), (urls, session, index) => {
      const gone = urls[index % urls.length];
      const same = (url: string) => url;
      const before = ranked(urls, session, same);
      const after = ranked(
        [...urls].reverse().filter((url) => url !== gone),
        session,
        same,
      );
      assert.deepEqual(
        after,
        before.filter((url) => url !== gone),
      );
    }),
  );
});

describe('requests beyond the room of all replicas', () => {
  it('wait in their order, and each gets the place of one that left', async (t) => {
    const engines = ['a', 'b'].map((url) => createScriptedReplica(url, hanging));
    const replicas = over(t, engines, 1);
    const running = () => engines.flatMap(({ requests }) => requests.map(({ requestId }) => requestId));
    const leaving = ['0', '1', '2', '3', '4'].map((id) => {
      const gone = new AbortController();
      const run = collect(replicas.generate(request(`s${id}`, { requestId: id }), gone.signal)).catch(() => {});
      return async () => {
        gone.abort(new Error('left'));
        await run;
      };
    });
    await until(() => running().length === 2);
    assert.deepEqual(running().sort(), ['0', '1']);
    assert.deepEqual(
      engines.map(({ running: busy }) => busy),
      [1, 1],
      'a session goes elsewhere rather than wait',
    );
    await leaving[3]?.();
    await leaving[0]?.();
    await until(() => running().length === 3);
    await leaving[1]?.();
    await until(() => running().length === 4);
    assert.deepEqual(running().sort(), ['0', '1', '2', '4'], 'who left the queue is skipped');
    for (const leave of leaving) await leave();
    assert.deepEqual(
      engines.map(({ running: busy }) => busy),
      [0, 0],
    );
  });

  it('say that they wait, so that nobody takes the engine for a dead one', async (t) => {
    const engine = createScriptedReplica('a', hanging);
    const replicas = createReplicas([engine], { requestsAtOnce: 1, probeMs: 3_600_000, signOfLifeMs: 5 });
    t.after(() => replicas.close());
    const gone = new AbortController();
    t.after(() => gone.abort(new Error('left')));
    void collect(replicas.generate(request('first'), gone.signal)).catch(() => {});
    await until(() => engine.requests.length === 1);
    for await (const event of replicas.generate(request('second'), gone.signal)) {
      assert.deepEqual(event, { tokenIds: [], logprobs: [] });
      break;
    }
    assert.equal(engine.requests.length, 1);
  });

  it('who leaves the front lets the next one in', async (t) => {
    const engine = createScriptedReplica('a', hanging);
    engine.capacity = { requests: null, kvTokens: 100 };
    const replicas = over(t, [engine], null);
    await replicas.health();
    const start = (id: string, tokens: number) => {
      const gone = new AbortController();
      const sized = { requestId: id, prompt: promptOf(Array(tokens).fill(1)), maxTokens: 1 };
      void collect(replicas.generate(request(id, sized), gone.signal)).catch(() => {});
      t.after(() => gone.abort(new Error('left')));
      return gone;
    };
    start('first', 60);
    const large = start('large', 80);
    start('small', 10);
    await until(() => engine.requests.length === 1);
    large.abort(new Error('left'));
    await until(() => engine.requests.length === 2);
    assert.equal(engine.requests[1]?.requestId, 'small');
  });

  it('do not overtake a large one', async (t) => {
    const engine = createScriptedReplica('a', hanging);
    engine.capacity = { requests: null, kvTokens: 100 };
    const replicas = over(t, [engine], null);
    await replicas.health();
    const start = (id: string, tokens: number) => {
      const gone = new AbortController();
      const large = { requestId: id, prompt: promptOf(Array(tokens).fill(1)), maxTokens: 1 };
      void collect(replicas.generate(request(id, large), gone.signal)).catch(() => {});
      return gone;
    };
    const first = start('first', 60);
    const large = start('large', 80);
    const small = start('small', 10);
    await until(() => engine.requests.length === 1);
    first.abort(new Error('left'));
    await until(() => engine.requests.length === 3);
    assert.deepEqual(
      engine.requests.map(({ requestId }) => requestId),
      ['first', 'large', 'small'],
    );
    for (const gone of [large, small]) gone.abort(new Error('left'));
  });

  it('are told when no replica is left', async (t) => {
    const engine = createScriptedReplica('a', (_, index) =>
      index === 0 ? { kind: 'fail', ids: [65], type: 'EngineUnavailable' } : { kind: 'say', ids: [65] },
    );
    const replicas = over(t, [engine], 1);
    await replicas.health();
    engine.state = 'refused';
    const outcomes = await Promise.allSettled(['x', 'y'].map((id) => collect(replicas.generate(request(id), never))));
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : null));
    failsWith('EngineUnavailable', /the script says so/)(reasons[0]);
    failsWith('EngineUnavailable', /a is away/)(reasons[1]);
  });
});

it('a cancelled request ends at the replica that holds it, and at no other', async (t) => {
  const engines = ['a', 'b', 'c'].map((url) => createScriptedReplica(url, hanging));
  const replicas = over(t, engines, 1);
  const cancels = ['x', 'y', 'z'].map((id) => {
    const cancel = new AbortController();
    const ended = assert.rejects(collect(replicas.generate(request(id), cancel.signal)), /cancelled/);
    return { id, ended, cancel: () => cancel.abort(new Error('cancelled')) };
  });
  await until(() => engines.every(({ running }) => running === 1));
  const [x, ...others] = cancels;
  x?.cancel();
  await x?.ended;
  const idle = engines.filter(({ running }) => running === 0);
  assert.deepEqual(
    idle.map(({ requests }) => requests[0]?.session),
    ['x'],
  );
  for (const { cancel } of others) cancel();
  await Promise.all(others.map(({ ended }) => ended));
});

it('closed replicas refuse what waits, and probe no more', async (t) => {
  const engine = createScriptedReplica('a', hanging);
  const replicas = createReplicas([engine], { requestsAtOnce: 1, probeMs: 1 });
  const cancel = new AbortController();
  t.after(() => cancel.abort());
  void collect(replicas.generate(request('x'), cancel.signal)).catch(() => {});
  await until(() => engine.running === 1);
  const waiting = assert.rejects(
    collect(replicas.generate(request('y'), never)),
    failsWith('EngineUnavailable', /the gateway ends/),
  );
  await replicas.close();
  await waiting;
  const { probes } = engine;
  await assert.rejects(collect(replicas.generate(request('z'), never)), failsWith('EngineUnavailable', /closed/));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(engine.probes, probes);
});
