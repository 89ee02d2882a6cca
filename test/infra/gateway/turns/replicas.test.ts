import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Engine } from '../../../../infra/engine/engine.ts';
import { createSlotTable } from '../../../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../../../infra/engine/replicas.ts';
import { createVllmEngine } from '../../../../infra/engine/vllm.ts';
import { chunksOf, startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { modelDir, startTestPolicy } from '../../kits/embedded-policy/server/policy-server.ts';

const maxTokensPerTurn = 480;

/** A real engine, and what came from it; `onFirst` runs before its first token is handed on. */
function watched(url: string, onFirst: () => Promise<void>) {
  const real = createVllmEngine({ url, model: 'policy', method: 'reload', baseVersion: 0 });
  const seen = { tokens: 0, failures: [] as unknown[] };
  const engine: Engine = {
    ...real,
    async *generate(request, signal) {
      try {
        for await (const event of real.generate(request, signal)) {
          if (seen.tokens === 0) await onFirst();
          seen.tokens += event.tokenIds.length;
          yield event;
        }
      } catch (error) {
        seen.failures.push(error);
        throw error;
      }
    },
  };
  return { engine, seen };
}

it('a turn whose replica is closed in mid-generation is completed by the other one, in the same stream', async () => {
  const policies = [await startTestPolicy(), await startTestPolicy()];
  const closed: string[] = [];
  const replicas = policies.map((policy) =>
    watched(policy.url, async () => {
      if (closed.length > 0) return;
      closed.push(policy.url);
      await policy.close();
    }),
  );
  const engines = replicas.map(({ engine }) => engine);
  const engine = createReplicas(engines, { slots: createSlotTable({ requestsAtOnce: null }) });
  try {
    await using gateway = await startTestGateway(engine, { modelDir });
    const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn };
    const secret = await gateway.open('a.1', { sampling });
    const messages = [{ role: 'user', content: 'Fix total.js' }];
    const reply = await gateway.chat(secret, { messages, stream: true });
    assert.equal(chunksOf(reply).at(-1)?.choices[0].finish_reason, 'length', reply.text.slice(-500));

    const dead = replicas.find((replica) => replica.engine.url === closed[0])?.seen;
    const other = replicas.find((replica) => replica.engine.url !== closed[0])?.seen;
    assert.ok(dead !== undefined && dead.tokens > 0 && dead.tokens < maxTokensPerTurn);
    assert.match(String(dead.failures[0]), /TemperFailure: engine: POST .*start the engine/);
    assert.deepEqual(other, { tokens: maxTokensPerTurn, failures: [] });

    const summary = await gateway.control.seal('a.1');
    assert.deepEqual([summary.turns, summary.engineFailures], [1, 0]);
    const [segment] = (await gateway.traceOf(summary)).segments;
    assert.ok(segment !== undefined);
    const scored = await policies.find(({ url }) => url !== closed[0])?.score(segment.tokens);
    const trained = segment.mask.flatMap((trains, at) => (trains === 1 ? [at] : []));
    assert.equal(trained.length, maxTokensPerTurn);
    assert.deepEqual(
      trained.map((at) => segment.logprobs[at]),
      trained.map((at) => scored?.[at - 1]),
    );
  } finally {
    await engine.close();
    for (const policy of policies) if (!closed.includes(policy.url)) await policy.close();
  }
});
