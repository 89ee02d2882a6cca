import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { createSlotTable } from '../../../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../../../infra/engine/replicas.ts';
import type { OpenSession } from '../../../../infra/gateway/control.ts';
import { useOfTrace } from '../../../../workflows/algorithms/cost.ts';
import { trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import { createScriptedReplica } from '../../../helpers/engine/replica.ts';
import type { Step } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const bytes = (text: string): number[] => [...Buffer.from(text)];

/** A gateway before one replica of version 1, which plays the steps in order. */
async function gatewayOf(t: TestContext, steps: readonly Step[]) {
  const replica = createScriptedReplica('http://one', (_, index) => steps[index] ?? { kind: 'hang' });
  const replicas = createReplicas([replica], { slots: createSlotTable({ requestsAtOnce: null }), probeMs: 20 });
  const gateway = await startTestGateway(replicas);
  t.after(async () => {
    await gateway[Symbol.asyncDispose]();
    await replicas.close();
  });
  const open = (changes: Partial<OpenSession> = {}) => gateway.open('a.1', changes);
  /** Sends a request, and leaves once its tokens are there and nothing more comes. */
  async function cut(secret: string): Promise<void> {
    const leave = new AbortController();
    gateway.chat(secret, ask('x'), leave.signal).catch(() => undefined);
    await until(() => replica.hanging === 1);
    leave.abort();
    await until(async () => (await gateway.control.status('a.1'))?.inFlight === 0);
  }
  return { gateway, open, cut };
}

describe('a turn that the end of its agent cuts', () => {
  it('is recorded and costed, and not trained', async (t) => {
    const { gateway, open, cut } = await gatewayOf(t, [
      { kind: 'say', ids: bytes('Hel'), version: 0, cut: 'abort' },
      { kind: 'hang', ids: bytes('lo') },
    ]);
    await cut(await open());
    const summary = await gateway.control.seal('a.1');
    const { turns, segments, maskedTurns, transcript, faultyCalls } = await gateway.traceOf(summary);
    assert.deepEqual([summary.turns, summary.sampledTokens, summary.minVersion], [1, 5, null]);
    assert.equal(summary.counts?.cuts, undefined);
    assert.ok(summary.promptTokens > 0 && summary.engineSeconds > 0);
    const [turn] = turns;
    assert.deepEqual([turn?.finishReason, turn?.aborts, turn?.sampledIds], ['abort', 1, bytes('Hello')]);
    assert.deepEqual(turn?.logprobs, [-0.001, -0.002, -0.003, -0.001, -0.002]);
    assert.deepEqual(turn?.versions, [
      { version: 0, start: 0, end: 3 },
      { version: 1, start: 3, end: 5 },
    ]);
    assert.deepEqual([segments, maskedTurns], [[], [{ turn: 0, reason: 'aborted' }]]);
    assert.deepEqual([transcript.at(-1)?.text, faultyCalls], ['Hello', {}]);
  });

  it('is trained if the run chooses so, also after the gateway was started again', async (t) => {
    const { gateway, open, cut } = await gatewayOf(t, [{ kind: 'hang', ids: bytes('Hel') }]);
    await cut(await open({ branches: { ...trainAllBranches, trainCutTurns: true } }));
    await gateway.restart();
    const summary = await gateway.control.seal('a.1');
    const { segments, maskedTurns } = await gateway.traceOf(summary);
    const [segment] = segments;
    assert.deepEqual([segment?.finishReason, maskedTurns, summary.minVersion], ['abort', [], 1]);
    assert.deepEqual(segment?.mask.slice(-4), [0, 1, 1, 1]);
    assert.deepEqual(segment?.logprobs.slice(-3), [-0.001, -0.002, -0.003]);
  });

  for (const text of ['x', 'y']) {
    it(`is left out if ${text === 'x' ? 'the same' : 'another'} request is answered later`, async (t) => {
      const { gateway, open, cut } = await gatewayOf(t, [
        { kind: 'hang', ids: bytes('Hel') },
        { kind: 'say', ids: [...bytes('Hi'), 258] },
      ]);
      const secret = await open();
      await cut(secret);
      assert.equal((await gateway.chatAgain(secret, ask(text))).status, 200);
      const summary = await gateway.control.seal('a.1');
      const { turns, segments } = await gateway.traceOf(summary);
      assert.deepEqual([turns.map(({ finishReason }) => finishReason), summary.sampledTokens], [['stop'], 3]);
      assert.deepEqual(summary.counts?.cuts, { requests: 1, tokens: 3 });
      assert.equal(useOfTrace(summary).sampledTokens, 6);
      assert.equal(segments.length, 1);
    });
  }
});
