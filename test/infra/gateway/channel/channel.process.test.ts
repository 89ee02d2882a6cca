import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { channelSocketIn } from '../../../../infra/agents/relay/protocol.ts';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createStreamRoute } from '../../../../infra/agents/relay/stream-route.ts';
import { createChannels } from '../../../../infra/gateway/channel/index.ts';
import { createScriptedEngine, type ScriptedEngine, type Step } from '../../../helpers/engine/scripted-engine.ts';
import { type BridgeSandbox, createBridgeSandbox } from '../../../helpers/gateway/bridge-sandbox.ts';
import { type Reply, sendTo, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';
import { sampleByPrompt } from '../../../helpers/gateway/gateway-process.ts';
import { converse, referenceRun, withoutTimes } from '../../../helpers/gateway/reference-run.ts';
import { until } from '../../../helpers/until.ts';

/** A relay, its bridge and the channel to a real gateway; everything but the sandbox around them. */
interface Rig extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly engine: ScriptedEngine;
  readonly sandbox: BridgeSandbox;
  readonly outages: readonly unknown[];
  /** Asks as the agent of the session does. */
  ask(body: object, signal?: AbortSignal): Promise<Reply>;
}

async function startRig(
  script: (index: number) => Step | null = () => null,
  beforeLast?: Promise<unknown>,
): Promise<Rig> {
  const home = await mkdtemp(join(tmpdir(), 'temper-channel-'));
  const engine = createScriptedEngine({
    script: (request, index) => script(index) ?? sampleByPrompt(request),
    chunk: 1,
    delayMs: 10,
    ...(beforeLast && { beforeLast }),
  });
  const gateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  const route = await createStreamRoute({ socketPath: channelSocketIn(home), retryMs: 60_000 });
  const relay = createProxy(route);
  const relaySocket = join(home, 'relay.sock');
  await once(relay.listen(relaySocket), 'listening');
  const sandbox = createBridgeSandbox(home);
  const outages: unknown[] = [];
  const held = createChannels(gateway.options.sockets).stream.hold(sandbox, {
    session: 'a.1',
    onOutage: (cause) => outages.push(cause),
  });
  const headers = { authorization: `Bearer ${secret}` };
  return {
    gateway,
    engine,
    sandbox,
    outages,
    ask: (body, signal) =>
      sendTo(relaySocket, {
        method: 'POST',
        path: '/v1/chat/completions',
        headers,
        body: JSON.stringify(body),
        ...(signal && { signal }),
      }),
    async [Symbol.asyncDispose]() {
      held.close();
      relay.closeAllConnections();
      relay.close();
      route.close();
      await gateway[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

const hello = { messages: [{ role: 'user', content: 'x' }] };
const saidIn = (reply: Reply): string =>
  [...reply.text.matchAll(/"content":"([^"]+)"/g)].map(([, piece]) => piece).join('');

describe('a channel', () => {
  it('carries a whole conversation to the same trace as the gateway alone', async () => {
    const expected = await referenceRun('a.1');
    await using rig = await startRig();
    assert.deepEqual(await converse(rig.ask), expected.replies);
    const trace = await rig.gateway.traceOf(await rig.gateway.control.seal('a.1'));
    assert.deepEqual(withoutTimes(trace), expected.trace);
    assert.equal(rig.sandbox.streams.length, 1);
  });

  it('carries bodies that are larger than its window', async () => {
    await using rig = await startRig();
    const reply = await rig.ask({ messages: [{ role: 'user', content: 'x'.repeat(1_500_000) }] });
    assert.equal(reply.status, 400, reply.text.slice(0, 300));
    assert.match(reply.text, /context/);
    const after = await rig.ask(hello);
    assert.equal(after.status, 200, after.text);
  });

  for (const stream of [false, true]) {
    it(`that is killed again and again costs no token of a reply ${stream ? 'that streams' : 'as a whole'}`, async () => {
      const ids = Array.from({ length: 150 }, (_, index) => 97 + (index % 26));
      const killed = Promise.withResolvers<void>();
      await using rig = await startRig((index) => ({ kind: 'say', ids: [65 + index, ...ids, 258] }), killed.promise);
      const asked = rig.ask({ ...hello, stream });
      await until(() => rig.engine.running === 1);
      for (let kills = 0; kills < 4; kills += 1) {
        const known = rig.sandbox.streams.length;
        await until(() => rig.sandbox.kill());
        await until(() => rig.sandbox.streams.length > known);
      }
      killed.resolve();
      const reply = await asked;
      const expected = String.fromCharCode(65, ...ids);
      assert.equal(stream ? saidIn(reply) : reply.json.choices[0].message.content, expected);
      assert.equal(rig.engine.requests.length, 1, 'expected the turn to be sampled once');
      const { turns } = await rig.gateway.control.seal('a.1');
      assert.equal(turns, 1);
    });
  }

  it('that the host itself loses is opened again, and waits for a gateway that restarts', async () => {
    await using rig = await startRig();
    await rig.gateway.stop();
    const asked = rig.ask(hello);
    const [first] = await until(() => (rig.sandbox.streams.length > 0 ? rig.sandbox.streams : null));
    first?.destroy(new Error('the network is gone'));
    await until(() => rig.sandbox.streams.length > 1);
    await rig.gateway.restart();
    assert.equal((await asked).status, 200);
    assert.equal((await rig.gateway.control.seal('a.1')).turns, 1);
  });

  it('ends a turn whose agent leaves', async () => {
    await using rig = await startRig(() => ({ kind: 'hang', ids: [65] }));
    const leaving = new AbortController();
    const asked = rig.ask({ ...hello, stream: true }, leaving.signal);
    await until(() => rig.engine.running === 1);
    leaving.abort();
    await assert.rejects(asked);
    await until(() => rig.engine.running === 0);
  });
});
