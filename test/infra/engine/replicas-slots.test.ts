import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import type { EngineCapacity, GenerateRequest } from '../../../infra/engine/engine.ts';
import { promptOf } from '../../../infra/engine/prompt.ts';
import { rankBySession } from '../../../infra/engine/replicas/pool.ts';
import { createRequestSlots, createSlotTable } from '../../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../../infra/engine/replicas.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { createScriptedReplica, type ScriptedReplica } from '../../helpers/engine/replica.ts';
import { until } from '../../helpers/until.ts';

const never = new AbortController().signal;
const hanging = () => ({ kind: 'hang', ids: [65] }) as const;

function request(session: string, more: Partial<GenerateRequest> = {}): GenerateRequest {
  const sampling = { maxTokens: 4, temperature: 1, topP: 1, topK: -1, stopTokenIds: [] };
  return { requestId: `${session}-0`, session, prompt: promptOf([1, 2]), ...sampling, ...more };
}

function over(t: TestContext, engines: readonly ScriptedReplica[], requestsAtOnce: number | null) {
  const replicas = createReplicas(engines, { slots: createSlotTable({ requestsAtOnce }), probeMs: 3_600_000 });
  t.after(() => replicas.close());
  return replicas;
}

const large = request('s', { prompt: promptOf(Array(100).fill(1)), maxTokens: 100 });

interface SlotCase {
  readonly title: string;
  readonly requestsAtOnce?: number;
  readonly capacity?: EngineCapacity;
  readonly request?: GenerateRequest;
  readonly sharers?: number;
  readonly slots: number;
}

describe('the slots of a replica', () => {
  const cases: readonly SlotCase[] = [
    { title: 'are those of the setting', requestsAtOnce: 3, capacity: { requests: 9, kvTokens: 100 }, slots: 3 },
    { title: 'are the engine’s running batch', capacity: { requests: 9, kvTokens: null }, slots: 9 },
    { title: 'are limited by its KV cache', capacity: { requests: null, kvTokens: 1_100 }, slots: 5 },
    { title: 'are the smaller of batch and cache', capacity: { requests: 2, kvTokens: 1_100 }, slots: 2 },
    {
      title: 'reserve a bounded number of tokens for a reply',
      capacity: { requests: null, kvTokens: 8_392 },
      request: { ...large, maxTokens: 50_000 },
      slots: 2,
    },
    { title: 'take any one request when idle', capacity: { requests: null, kvTokens: 10 }, slots: 1 },
    { title: 'are bounded where the engine reports nothing', slots: 256 },
    { title: 'are shared among gateways, by the setting', requestsAtOnce: 8, sharers: 2, slots: 4 },
    { title: 'are shared by the KV cache', capacity: { requests: 9, kvTokens: 1_600 }, sharers: 2, slots: 4 },
    { title: 'are shared where the engine reports nothing', sharers: 4, slots: 64 },
    { title: 'are at least one for each gateway', requestsAtOnce: 1, sharers: 2, slots: 1 },
  ];
  for (const { title, requestsAtOnce = null, capacity, request: one = large, sharers = 1, slots } of cases) {
    it(title, () => {
      const free = createRequestSlots({ requestsAtOnce, sharers }, () => capacity);
      let taken = 0;
      while (taken < 1_000 && free.take(one) !== null) taken += 1;
      assert.equal(taken, slots);
    });
  }

  it('releases each slot once, even if a caller releases twice', () => {
    const slots = createRequestSlots({ requestsAtOnce: 2 }, () => undefined);
    const [first, second] = [slots.take(large), slots.take(large)];
    assert.equal(slots.take(large), null);
    first?.();
    first?.();
    assert.notEqual(slots.take(large), null);
    assert.equal(slots.take(large), null);
    second?.();
    assert.notEqual(slots.take(large), null);
  });
});

it('a replica that leaves moves only its own sessions, whatever their names', () => {
  const names = fc.uniqueArray(fc.webUrl(), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(names, fc.string(), fc.nat(), (urls, session, index) => {
      const gone = urls[index % urls.length];
      const same = (url: string) => url;
      const before = rankBySession(urls, session, same);
      const after = rankBySession(
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

describe('requests beyond the slots of all replicas', () => {
  it('wait in order, and each gets the slot of one that ended', async (t) => {
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
      'a session uses another replica rather than wait',
    );
    await leaving[3]?.();
    await leaving[0]?.();
    await until(() => running().length === 3);
    await leaving[1]?.();
    await until(() => running().length === 4);
    assert.deepEqual(running().sort(), ['0', '1', '2', '4'], 'a request that left the queue is skipped');
    for (const leave of leaving) await leave();
    assert.deepEqual(
      engines.map(({ running: busy }) => busy),
      [0, 0],
    );
  });

  it('yield empty events while they wait, so that the engine does not look dead', async (t) => {
    const engine = createScriptedReplica('a', hanging);
    const replicas = createReplicas([engine], {
      slots: createSlotTable({ requestsAtOnce: 1 }),
      probeMs: 3_600_000,
      keepAliveMs: 5,
    });
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

  it('admit the next one when the first of the queue is cancelled', async (t) => {
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

  it('fail when no replica is left', async (t) => {
    const engine = createScriptedReplica('a', (_, index) =>
      index === 0 ? { kind: 'fail', ids: [65], type: 'EngineUnavailable' } : { kind: 'say', ids: [65] },
    );
    const replicas = over(t, [engine], 1);
    await replicas.health();
    engine.state = 'refused';
    const outcomes = await Promise.allSettled(['x', 'y'].map((id) => collect(replicas.generate(request(id), never))));
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : null));
    failsWith('EngineUnavailable', /the script says so/)(reasons[0]);
    failsWith('EngineUnavailable', /a is out of service/)(reasons[1]);
  });
});

it('a cancelled request ends at the replica that runs it, and at no other', async (t) => {
  const engines = ['a', 'b', 'c'].map((url) => createScriptedReplica(url, hanging));
  const replicas = over(t, engines, 1);
  const cancels = ['x', 'y', 'z'].map((id) => {
    const cancel = new AbortController();
    const ended = assert.rejects(collect(replicas.generate(request(id), cancel.signal)), /cancelled/);
    return { id, ended, cancel: () => cancel.abort(new Error('cancelled')) };
  });
  await until(() => engines.every(({ running }) => running === 1));
  const [x, ...rest] = cancels;
  x?.cancel();
  await x?.ended;
  const idle = engines.filter(({ running }) => running === 0);
  assert.deepEqual(
    idle.map(({ requests }) => requests[0]?.session),
    ['x'],
  );
  for (const { cancel } of rest) cancel();
  await Promise.all(rest.map(({ ended }) => ended));
});

it('closed replicas refuse waiting requests and end their probes', async (t) => {
  const engine = createScriptedReplica('a', hanging);
  const replicas = createReplicas([engine], { slots: createSlotTable({ requestsAtOnce: 1 }), probeMs: 1 });
  const cancel = new AbortController();
  t.after(() => cancel.abort());
  void collect(replicas.generate(request('x'), cancel.signal)).catch(() => {});
  await until(() => engine.running === 1);
  const waiting = assert.rejects(
    collect(replicas.generate(request('y'), never)),
    failsWith('EngineUnavailable', /this gateway is stopping/),
  );
  await replicas.close();
  await waiting;
  const { probes } = engine;
  await assert.rejects(collect(replicas.generate(request('z'), never)), failsWith('EngineUnavailable', /closed/));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(engine.probes, probes);
});
