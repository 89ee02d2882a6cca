import assert from 'node:assert/strict';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../../infra/agents/relay/socket-route.ts';
import type { Engine } from '../../../../infra/engine/engine.ts';
import { createGatewayControl } from '../../../../infra/gateway/client.ts';
import { gatewayNames, orderFor, socketOf } from '../../../../infra/gateway/sockets.ts';
import { createScriptedEngine, type ScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { createSingleEngine } from '../../../helpers/engine/single-engine.ts';
import { chunksOf, sendTo, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';
import { sampleByPrompt } from '../../../helpers/gateway/gateway-process.ts';
import { converse, referenceRun, startProcess, withoutTimes } from '../../../helpers/gateway/reference-run.ts';
import { until } from '../../../helpers/until.ts';

const scripted = (): ScriptedEngine => createScriptedEngine({ script: sampleByPrompt });
const ask = (content: string) => ({ messages: [{ role: 'user', content }] });

/** Another gateway on the same sessions. */
const beside = (gateway: TestGateway, engine: Engine): Promise<TestGateway> =>
  startTestGateway(engine, { ...gateway.options, name: 'gateway-1' });

describe('two gateways on the same sessions', () => {
  it('answer alike: a gateway without the session asks the one that has it', async () => {
    const [engine, otherEngine] = [scripted(), scripted()];
    await using gateway = await startTestGateway(engine);
    await using other = await beside(gateway, otherEngine);
    const secret = await gateway.open('a.1', { group: 'g' });
    const first = await other.chat(secret, ask('Begin.'));
    assert.equal(first.status, 200, first.text);
    assert.equal(first.headers['x-temper-gateway'], 'gateway');
    const again = await gateway.chatAgain(secret, ask('Begin.'));
    assert.equal(again.text, first.text);
    assert.deepEqual([engine.requests.length, otherEngine.requests.length], [1, 0]);
    await other.open('a.1');
    assert.equal((await other.control.status('a.1'))?.turns, 1);
    assert.deepEqual(await other.control.minVersions(['g']), await gateway.control.minVersions(['g']));
    const summary = await other.control.seal('a.1');
    assert.deepEqual([summary.turns, await gateway.control.seal('a.1')], [1, summary]);
    assert.equal((await gateway.chat(secret, ask('Begin.'))).status, 410);
  });

  it('stream alike, and an agent that disconnects ends the generation at the other gateway', async () => {
    const engine = createScriptedEngine({
      script: (request, index) => (index === 0 ? sampleByPrompt(request) : { kind: 'hang', ids: [97, 98] }),
    });
    await using gateway = await startTestGateway(engine);
    await using other = await beside(gateway, scripted());
    const secret = await gateway.open('a.1');
    const whole = await other.chat(secret, { ...ask('Begin.'), stream: true });
    assert.ok(chunksOf(whole).length > 3 && whole.text.endsWith('data: [DONE]\n\n'), whole.text);
    const leaving = new AbortController();
    const left = assert.rejects(other.chat(secret, ask('Continue.'), leaving.signal));
    await until(async () => engine.running === 1);
    leaving.abort();
    await left;
    await until(async () => engine.running === 0);
  });

  it('make one turn of the same request when it reaches both at once', async () => {
    const engine = createScriptedEngine({ script: sampleByPrompt, delayMs: 10 });
    await using gateway = await startTestGateway(engine);
    await using other = await beside(gateway, engine);
    const secret = await gateway.open('a.1');
    await gateway.restart();
    const replies = await Promise.all(
      [gateway, other, gateway, other].map((one) =>
        one.chatAgain(secret, ask('Begin.'), { 'x-temper-request': 'r-1' }),
      ),
    );
    const answered = replies.filter(({ status }) => status === 200);
    // The very first requests may arrive while the session moves; agents send those again.
    assert.ok(answered.length >= 2 && replies.every(({ status }) => status === 200 || status === 503));
    assert.equal(new Set(answered.map(({ text }) => text)).size, 1);
    assert.equal(engine.requests.length, 1);
    assert.equal((await other.control.seal('a.1')).turns, 1);
  });

  it('hand a session over when its gateway closes, and never take it from a running one', async () => {
    await using gateway = await startTestGateway(scripted());
    await using other = await beside(gateway, scripted());
    const secret = await gateway.open('a.1');
    const said = (await gateway.chat(secret, ask('Begin.'))).text;
    await gateway.stop();
    const moved = await other.chatAgain(secret, ask('Begin.'));
    assert.deepEqual([moved.headers['x-temper-gateway'], moved.text], ['gateway-1', said]);
    await gateway.restart();
    const back = await gateway.chatAgain(secret, ask('Begin.'));
    assert.deepEqual([back.headers['x-temper-gateway'], back.text], ['gateway-1', said]);
  });

  it('forward a request only once; when the session is not there, the client retries', async () => {
    await using gateway = await startTestGateway(scripted());
    await using other = await beside(gateway, scripted());
    const secret = await gateway.open('a.1');
    const headers = { authorization: `Bearer ${secret}`, 'x-temper-forwarded': '1' };
    const socket = socketOf(other.options.sockets.agents, 'gateway-1');
    const reply = await sendTo(socket, { path: '/v1/models', headers });
    assert.deepEqual([reply.status, reply.headers['x-should-retry']], [503, 'true']);
  });
});

describe('a gateway that has a session', () => {
  it('can be killed in the middle of a turn: the other one continues, and the trace equals that of an undisturbed run', async () => {
    const expected = await referenceRun('a.1');
    await using gateway = await startTestGateway(scripted());
    await gateway.stop();
    const options = { ...gateway.options, policies: createSingleEngine(scripted(), 1_000), log: () => {} };
    const child = await startProcess(options, { dieInGeneration: 1 });
    await using other = await beside(gateway, scripted());
    const relay = createProxy(createSocketRoute({ directory: options.sockets.agents, retryMs: 60_000 }));
    const relaySocket = join(dirname(options.journalDir), 'relay.sock');
    await new Promise<void>((resolve) => relay.listen(relaySocket, resolve));
    try {
      const headers = { authorization: `Bearer ${await gateway.open('a.1')}` };
      const exited = once(child, 'exit');
      const said = await converse((body) =>
        sendTo(relaySocket, { method: 'POST', path: '/v1/chat/completions', headers, body: JSON.stringify(body) }),
      );
      assert.deepEqual(await exited, [null, 'SIGKILL']);
      assert.deepEqual(said, expected.replies);
      const summary = await other.control.seal('a.1');
      assert.deepEqual(withoutTimes(await gateway.traceOf(summary)), expected.trace);
    } finally {
      relay.closeAllConnections();
      relay.close();
      child.kill('SIGKILL');
    }
  });

  it('keeps its session while it is stopped (SIGSTOP) and continued', async () => {
    await using gateway = await startTestGateway(scripted());
    await gateway.stop();
    const child = await startProcess(
      { ...gateway.options, policies: createSingleEngine(scripted(), 1_000), log: () => {} },
      {},
    );
    await using other = await beside(gateway, scripted());
    try {
      const secret = await gateway.open('a.1');
      child.kill('SIGSTOP');
      let answered = false;
      const reply = other.chat(secret, ask('Begin.')).finally(() => {
        answered = true;
      });
      await delay(300);
      assert.equal(answered, false);
      child.kill('SIGCONT');
      assert.deepEqual([(await reply).status, (await reply).headers['x-temper-gateway']], [200, 'gateway']);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('the control side of several gateways', () => {
  it('is chosen by the session', () => {
    const names = gatewayNames(4);
    const firsts = Array.from({ length: 400 }, (_, index) => orderFor(`rollout-${index}.1`, names)[0]);
    for (const name of names) {
      const share = firsts.filter((first) => first === name).length;
      assert.ok(share > 60 && share < 140, `${name}: ${share} of 400`);
    }
    assert.deepEqual([...orderFor('a.1', names)].sort(), [...names].sort());
  });

  it('skips a gateway that is away, and fails when all are', async () => {
    await using gateway = await startTestGateway(scripted());
    const sockets = ['gateway-1', 'gateway', 'gateway-2'].map((name) =>
      socketOf(gateway.options.sockets.control, name),
    );
    const control = createGatewayControl(sockets);
    await gateway.open('a.1');
    for (const id of ['a.1', 'b.1', 'c.1', 'd.1']) await control.status(id);
    assert.equal((await control.status('a.1'))?.state, 'open');
    await gateway.stop();
    await assert.rejects(control.status('a.1'), { type: 'GatewayUnavailable' });
    await control.end();
  });
});
