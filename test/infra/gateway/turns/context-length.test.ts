import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EngineHealth } from '../../../../infra/engine/engine.ts';
import { createContextLength } from '../../../../infra/gateway/turns/context-length.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { openSession, startTestGateway } from '../../../helpers/gateway/gateway.ts';

const signal = new AbortController().signal;

/** Creates an engine that reports these context lengths in turn; 'away' means that it does not answer. */
function engineOf(lengths: (number | null | 'away')[]) {
  return {
    async health(): Promise<EngineHealth> {
      const contextLength = lengths.shift();
      assert.ok(contextLength !== undefined, 'it is not asked so often');
      if (contextLength === 'away') throw new TemperFailure('EngineUnavailable', 'away');
      return { ready: true, paused: false, version: 0, contextLength };
    },
  };
}

describe('the context length', () => {
  it('is read once while it is fresh', async () => {
    const length = createContextLength(engineOf([100]), 1_000, 60_000);
    assert.deepEqual(
      [await length.wait(() => {}, signal), await length.look(), await length.wait(() => {}, signal)],
      [100, 100, 100],
    );
  });

  it('is read again later, and keeps its old value when the engine is away then', async () => {
    const length = createContextLength(engineOf([100, 'away', 200]), 1_000, 0);
    assert.deepEqual(
      [await length.wait(() => {}, signal), await length.wait(() => {}, signal), await length.wait(() => {}, signal)],
      [100, 100, 200],
    );
  });

  it('is no limit for an engine that does not report it, and agents receive none', async () => {
    const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }), contextLength: null });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('a.1');
    assert.equal((await gateway.chat(secret, { messages: [{ role: 'user', content: 'x' }] })).status, 200);
    assert.equal(engine.requests[0]?.maxTokens, 500);
    const { contextLength } = await gateway.control.open(openSession('a.2'));
    assert.equal(contextLength, null);
  });
});
