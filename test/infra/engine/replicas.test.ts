import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { GenerateRequest } from '../../../infra/engine/engine.ts';
import { promptOf } from '../../../infra/engine/prompt.ts';
import { createSlotTable } from '../../../infra/engine/replicas/slots.ts';
import { createReplicas, type ReplicaEvent, type ReplicasOptions } from '../../../infra/engine/replicas.ts';
import { collect, failsWith } from '../../helpers/engine/engine-events.ts';
import { createScriptedReplica, type ScriptedReplica } from '../../helpers/engine/replica.ts';
import { until } from '../../helpers/until.ts';

const never = new AbortController().signal;
/** An interval so long that only the tests' own calls probe. */
const hourly = 3_600_000;
const hanging = () => ({ kind: 'hang', ids: [65] }) as const;

function request(session: string, more: Partial<GenerateRequest> = {}): GenerateRequest {
  const sampling = { maxTokens: 4, temperature: 1, topP: 1, topK: -1, stopTokenIds: [] };
  return { requestId: `${session}-0`, session, prompt: promptOf([1, 2]), ...sampling, ...more };
}

async function over(t: TestContext, engines: readonly ScriptedReplica[], options: Partial<ReplicasOptions> = {}) {
  const events: ReplicaEvent[] = [];
  const replicas = createReplicas(engines, {
    slots: createSlotTable({ requestsAtOnce: null }),
    probeMs: hourly,
    probeTimeoutMs: 20,
    ...options,
    onEvent: (event) => events.push(event),
  });
  t.after(() => replicas.close());
  await until(() => engines.every(({ probes }) => probes > 0));
  await replicas.health();
  return { replicas, events, ask: (session: string) => collect(replicas.generate(request(session), never)) };
}

const three = () => ['a', 'b', 'c'].map((url) => createScriptedReplica(url));
const servedBy = (engines: readonly ScriptedReplica[], session: string): string[] =>
  engines.flatMap(({ url, requests }) => requests.filter((one) => one.session === session).map(() => url));

/** Returns the replica that a session tries first. */
async function homeOf(
  engines: readonly ScriptedReplica[],
  ask: (session: string) => Promise<unknown>,
  session: string,
) {
  await ask(session);
  const home = engines.find(({ requests }) => requests.some((one) => one.session === session));
  assert.ok(home !== undefined);
  return home;
}

describe('a session', () => {
  it('stays on one replica, and many sessions spread over all of them', async (t) => {
    const engines = three();
    const { ask } = await over(t, engines);
    const sessions = Array.from({ length: 60 }, (_, index) => `s${index}`);
    for (const session of [...sessions, ...sessions]) await ask(session);
    for (const session of sessions) {
      const [first, second, ...more] = servedBy(engines, session);
      assert.deepEqual([second, more], [first, []]);
    }
    for (const { requests } of engines) assert.ok(requests.length >= 20, `${requests.length} of 120`);
  });

  it('moves only when its own replica leaves, and returns with it', async (t) => {
    const engines = three();
    const { ask, replicas } = await over(t, engines, { probeMs: 5 });
    const sessions = Array.from({ length: 30 }, (_, index) => `s${index}`);
    for (const session of sessions) await ask(session);
    const gone = engines[1];
    assert.ok(gone !== undefined);
    gone.state = 'refused';
    const probes = gone.probes;
    await until(() => gone.probes >= probes + 3);
    for (const session of sessions) await ask(session);
    gone.state = 'ready';
    const seen = gone.probes;
    await until(() => gone.probes >= seen + 2);
    for (const session of sessions) await ask(session);
    assert.equal((await replicas.health()).ready, true);
    for (const session of sessions) {
      const visited = [...new Set(servedBy(engines, session))];
      if (visited.includes('b')) assert.equal(servedBy(engines, session).filter((url) => url === 'b').length, 2);
      else assert.equal(visited.length, 1);
    }
    assert.ok(gone.requests.length > 0);
  });
});

describe('a replica', () => {
  it('leaves service when a generation fails there, and returns with its next good probe', async (t) => {
    const engines = three().map(({ url }) =>
      createScriptedReplica(url, (_, index) =>
        index === 1 ? { kind: 'fail', type: 'EngineUnavailable' } : { kind: 'say', ids: [65] },
      ),
    );
    const { ask, replicas, events } = await over(t, engines);
    const home = await homeOf(engines, ask, 's');
    await assert.rejects(ask('s'), failsWith('EngineUnavailable', /the script says so/));
    assert.deepEqual(events.at(-1), { url: home.url, inService: false, version: 1, reason: 'the script says so' });
    await ask('s');
    assert.equal(home.requests.length, 2);
    await replicas.publish({ version: 1, name: 'again', path: '/w', method: 'reload' });
    await ask('s');
    assert.equal(home.requests.length, 3);
  });

  it('stays in service after an invalid reply, since the request may be at fault', async (t) => {
    const engines = [createScriptedReplica('a', () => ({ kind: 'fail', type: 'EngineInvalid' }))];
    const { ask, replicas } = await over(t, engines);
    await assert.rejects(ask('s'), failsWith('EngineInvalid', /./));
    assert.equal((await replicas.health()).ready, true);
  });

  it('may miss one probe, not two, and is not ready while it starts', async (t) => {
    for (const state of ['refused', 'starting'] as const) {
      const engines = three();
      const { ask, replicas } = await over(t, engines);
      const home = await homeOf(engines, ask, 's');
      home.state = state;
      const probe = () => replicas.publish({ version: 1, name: 'x', path: '/w', method: 'reload' });
      await probe();
      await ask('s');
      assert.equal(home.requests.length, 2);
      await probe();
      await ask('s');
      assert.equal(home.requests.length, 2);
    }
  });

  it('that is silent stays until another one answers; later its requests are aborted', async (t) => {
    const engines = ['a', 'b'].map((url) => createScriptedReplica(url, hanging));
    const { replicas } = await over(t, engines, { probeMs: 1, probeTimeoutMs: 10 });
    const outcome = collect(replicas.generate(request('s'), never)).catch((error: unknown) => error);
    await until(() => engines.some(({ running }) => running === 1));
    for (const engine of engines) engine.state = 'silent';
    const probes = engines.map((engine) => engine.probes);
    await until(() => engines.every((engine, index) => engine.probes > (probes[index] ?? 0) + 8));
    assert.equal((await replicas.health()).ready, true);
    assert.equal(engines.filter(({ running }) => running === 1).length, 1);
    const other = engines.find(({ running }) => running === 0);
    assert.ok(other !== undefined);
    other.state = 'ready';
    failsWith('EngineUnavailable', /aborted: no answer to a probe within 10 ms/)(await outcome);
    const leaving = new AbortController();
    const left = assert.rejects(collect(replicas.generate(request('s'), leaving.signal)), /left/);
    await until(() => other.running === 1);
    leaving.abort(new Error('left'));
    await left;
  });
});

describe('versions', () => {
  it('a replica with an older version than another receives no requests until it has caught up', async (t) => {
    const engines = three();
    const { ask, replicas } = await over(t, engines, { probeMs: 5 });
    const home = await homeOf(engines, ask, 's');
    for (const engine of engines) if (engine !== home) engine.version = 2;
    await until(() => engines.every((engine) => engine === home || engine.probes > 3));
    assert.equal((await replicas.health()).version, 2);
    await ask('s');
    assert.equal(home.requests.length, 1);
    home.version = null;
    const probes = home.probes;
    await until(() => home.probes > probes + 2);
    await ask('s');
    assert.equal(home.requests.length, 1, 'a restarted one has its first weights');
    home.version = 2;
    await until(async () => {
      await ask('s');
      return home.requests.length === 2;
    });
  });

  it('sampled tokens show a new version before a probe does', async (t) => {
    const engines = three().map(({ url }) =>
      createScriptedReplica(url, () => ({ kind: 'say', ids: [65], version: url === 'a' ? 2 : 1 })),
    );
    const { ask } = await over(t, engines);
    const [a] = engines;
    for (let index = 0; a?.requests.length === 0; index += 1) await ask(`s${index}`);
    for (let index = 0; index < 10; index += 1) await ask(`t${index}`);
    assert.equal(a?.requests.filter(({ session }) => session?.startsWith('t')).length, 10);
  });

  it('older weights do not replace those of a replica that died with the newest', async (t) => {
    const engines = [createScriptedReplica('a'), createScriptedReplica('b')];
    const [a, b] = engines;
    assert.ok(a !== undefined && b !== undefined);
    b.version = 2;
    const { ask } = await over(t, engines, { probeMs: 5 });
    b.state = 'refused';
    await until(() => b.probes > 4);
    const message = /a serves version 1, expected 2; b is out of service: b refuses connections/;
    await assert.rejects(ask('s'), failsWith('EngineUnavailable', message));
    a.version = 2;
    await ask('s');
    assert.equal(a.requests.length, 1);
  });

  it('a new run does not wait for a replica that died with the last run’s weights', async (t) => {
    const engines = three();
    for (const engine of engines) engine.version = 24;
    const { ask } = await over(t, engines, { probeMs: 5 });
    const [dead, ...alive] = engines;
    assert.ok(dead !== undefined);
    const probedAgain = async () => {
      const before = engines.map(({ probes }) => probes);
      await until(() => engines.every(({ probes }, index) => probes > (before[index] ?? 0) + 3));
    };
    dead.state = 'refused';
    await probedAgain();
    for (const engine of alive) engine.version = 0;
    await probedAgain();
    await ask('s0');
    assert.deepEqual(dead.requests, []);
  });
});

describe('without a replica in service', () => {
  it('a request fails as unavailable and names each; the next one finds those that are back, without waiting for a probe', async (t) => {
    const engines = three();
    for (const engine of engines) engine.state = 'refused';
    const replicas = createReplicas(engines, { slots: createSlotTable({ requestsAtOnce: null }), probeMs: hourly });
    t.after(() => replicas.close());
    const ask = () => collect(replicas.generate(request('s'), never));
    await assert.rejects(replicas.health(), failsWith('EngineUnavailable', /a: a refuses .*c: c refuses/));
    await assert.rejects(
      ask(),
      failsWith('EngineUnavailable', /a is out of service: a refuses .*c is out of service: c refuses/),
    );
    for (const engine of engines) engine.state = 'ready';
    assert.equal((await ask()).at(-1)?.finishReason, 'stop');
  });

  it('a request is refused even while some replica is always being probed', async (t) => {
    const engines = three();
    for (const engine of engines) engine.state = 'silent';
    const replicas = createReplicas(engines, {
      slots: createSlotTable({ requestsAtOnce: null }),
      probeMs: 7,
      probeTimeoutMs: 25,
    });
    t.after(() => replicas.close());
    const asked = collect(replicas.generate(request('s'), never));
    await assert.rejects(asked, failsWith('EngineUnavailable', /no engine is in service/));
  });
});

it('replicas together serve the versions that each of them serves', async (t) => {
  const engines = three().map((engine, index) => ({
    ...engine,
    health: async (signal?: AbortSignal) => ({ ...(await engine.health(signal)), versions: [index === 1 ? 0 : -1, 1] }),
    get probes() {
      return engine.probes;
    },
  }));
  const { replicas } = await over(t, engines);
  assert.deepEqual((await replicas.health()).versions, [1]);
});
