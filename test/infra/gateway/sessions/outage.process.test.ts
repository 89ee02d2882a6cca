import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../infra/gateway/gateway-error.ts';
import type { Journal, JournalRecord } from '../../../../infra/gateway/sessions/journal.ts';
import { classifyFailure, createRequestFailures } from '../../../../infra/gateway/sessions/request-failures.ts';
import type { Upstreams } from '../../../../infra/gateway/upstream/upstreams.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { createScriptedEngine, type Step } from '../../../helpers/engine/scripted-engine.ts';
import { startScriptedServer } from '../../../helpers/engine/scripted-server.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const bytes = (text: string): number[] => [...Buffer.from(text)];
const down: Step = { kind: 'fail', type: 'EngineUnavailable' };

/** Returns the engine failures of a session that is sealed once the engine was asked `calls` times. */
async function sealedAfter(calls: number, script: (index: number) => Step): Promise<number> {
  const engine = createScriptedEngine({ script: (_, index) => script(index) });
  await using gateway = await startTestGateway(engine);
  const asked = gateway.chat(await gateway.open('a.1'), ask('x'));
  await until(() => engine.requests.length >= calls);
  const { engineFailures, cutOff = false } = await gateway.control.seal('a.1');
  assert.equal((await asked).status, 410);
  assert.equal(cutOff, engineFailures > 0);
  return engineFailures;
}

describe('a turn that is cancelled while the engine is away', () => {
  it('is an engine failure when its session ends within the grace period', async () => {
    assert.equal(await sealedAfter(2, () => down), 1);
  });

  it('is an engine failure when the engine did not even report its context length', async () => {
    const engine = createScriptedEngine({ script: () => assert.fail('the engine is away') });
    let asked = 0;
    const health = async (): Promise<never> => {
      asked += 1;
      throw new TemperFailure('EngineUnavailable', 'the script says so');
    };
    await using gateway = await startTestGateway({ ...engine, health });
    const secret = await gateway.open('a.1');
    const before = asked;
    const chat = gateway.chat(secret, ask('x'));
    await until(() => asked > before + 1);
    assert.equal((await gateway.control.seal('a.1')).engineFailures, 1);
    await chat;
  });

  it('is an engine failure when an upstream model is away', async () => {
    const server = await startScriptedServer({ 'POST /v1/chat/completions': () => ({ status: 503, json: {} }) });
    const upstreams: Upstreams = {
      find: async (name) => ({
        name,
        url: `${server.url}/v1`,
        model: 'large',
        apiKey: null,
        contextLength: 9000,
        maxTokensField: 'max_tokens',
        returnsReasoning: false,
        readsImages: false,
        namesSession: false,
      }),
    };
    try {
      const engine = createScriptedEngine({ script: () => assert.fail('the engine is not asked') });
      await using gateway = await startTestGateway(engine, { upstreams });
      const secret = await gateway.open('a.1', { upstream: { name: 'others', model: 'large' } });
      const chat = gateway.chat(secret, ask('x'));
      await until(() => server.seen.length > 1);
      assert.equal((await gateway.control.seal('a.1')).engineFailures, 1);
      await chat;
    } finally {
      await server.close();
    }
  });

  it('is an engine failure when its tokens were lost and the engine has sampled nothing since', async () => {
    const lost: Step = { ...down, ids: bytes('Hel') };
    assert.equal(await sealedAfter(2, (index) => (index === 0 ? lost : { kind: 'hang' })), 1);
  });

  it('is an engine failure when its client disconnected, also after a restart, unless the request is answered later', async () => {
    let step: Step = down;
    const engine = createScriptedEngine({ script: () => step });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    for (const text of ['x', 'y']) {
      const before = engine.requests.length;
      const leaving = new AbortController();
      const left = gateway.chat(secret, ask(text), leaving.signal).catch(() => null);
      await until(() => engine.requests.length > before + 1);
      leaving.abort();
      await left;
      await until(async () => (await gateway.control.status('a.1'))?.inFlight === 0);
    }
    step = { kind: 'say', ids: bytes('Good') };
    assert.equal((await gateway.chat(secret, ask('x'))).status, 200);
    await gateway.restart();
    const { engineFailures, cutOff } = await gateway.control.seal('a.1');
    assert.deepEqual([engineFailures, cutOff], [1, undefined], 'a turn followed both');
  });
});

it('a cancelled turn is no engine failure when the engine is only slow, or was away and samples again', async () => {
  assert.equal(await sealedAfter(1, () => ({ kind: 'hang' })), 0);
  const engine = createScriptedEngine({
    script: (_, index) => (index === 0 ? down : { kind: 'hang', ids: bytes('Hel') }),
  });
  await using gateway = await startTestGateway(engine);
  const asked = gateway.post('/v1/chat/completions', await gateway.open('a.1'), { ...ask('x'), stream: true });
  // The scripted engine sends its ids at once, before the next turn of the event loop.
  await until(() => engine.requests.length === 2 && engine.running === 1);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal((await gateway.control.seal('a.1')).engineFailures, 0);
  await asked;
});

describe('a gateway that cannot record a turn', () => {
  it('has a gateway failure; its own restart and invalid requests are not failures', () => {
    const running = (abandoned: boolean, waiting: boolean) => ({ abandoned, waiting });
    const full = new TemperFailure('DiskFull', 'no space left');
    assert.equal(classifyFailure(running(false, false), full), 'gateway-failure');
    assert.equal(classifyFailure(running(false, false), new TypeError('a bug')), 'gateway-failure');
    assert.equal(classifyFailure(running(false, false), new GatewayError('turn-limit', 'stop')), null);
    assert.equal(classifyFailure(running(true, false), new GatewayError('internal', 'the client disconnected')), null);
    assert.equal(classifyFailure(running(true, true), new GatewayError('gateway-closing', 'restart')), null);
  });

  const skip = process.getuid?.() === 0 ? false : 'needs root, to mount a small disk';
  it('counts the failure on a full disk, unless the request is answered once there is space', { skip }, async () => {
    const journalDir = await mkdtemp(join(tmpdir(), 'temper-outage-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'temper-test', journalDir]);
    try {
      const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: bytes('Good') }) });
      await using gateway = await startTestGateway(engine, { journalDir });
      const secret = await gateway.open('a.1');
      const filler = join(journalDir, 'filler');
      const { bavail, bsize } = await statfs(journalDir);
      await writeFile(filler, Buffer.alloc(bavail * bsize));
      // This is more than the space that is left in the last page of the journal.
      const [first, second] = ['x', 'y'].map((letter) => ask(letter.repeat(20_000)));
      for (const body of [first, second]) {
        const reply = await gateway.chat(secret, body ?? {});
        assert.deepEqual([reply.status, reply.json.error.code], [503, 'gateway_unavailable']);
      }
      await rm(filler);
      assert.equal((await gateway.chat(secret, first ?? {})).status, 200);
      await gateway.restart();
      const { gatewayFailures, engineFailures } = await gateway.control.seal('a.1');
      assert.deepEqual([gatewayFailures, engineFailures], [1, 0]);
    } finally {
      execFileSync('umount', ['-l', journalDir]);
      await rm(journalDir, { recursive: true, force: true });
    }
  });

  it('keeps the failure in memory, and writes it once there is space', async () => {
    const records: JournalRecord[] = [];
    let isFull = true;
    const journal: Journal = {
      async append(record) {
        if (isFull) throw new TemperFailure('DiskFull', 'no space left');
        records.push(record);
      },
      close: async () => {},
    };
    const failures = createRequestFailures({ journal, turns: () => [], isAnswered: () => false });
    await assert.rejects(failures.add('gateway-failure', 'k'), { type: 'DiskFull' });
    assert.deepEqual([failures.count('gateway-failure'), failures.unwritten], [1, true]);
    isFull = false;
    await failures.write();
    assert.deepEqual([records.map(({ kind }) => kind), failures.unwritten], [['flag'], false]);
  });
});
