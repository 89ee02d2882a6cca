import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createVllmEngine } from '../../../../infra/engine/vllm.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { modelDir, startTestPolicy } from '../../kits/embedded-policy/server/policy-server.ts';

const tools = ['bash', 'edit', 'submit'].map((name) => ({
  type: 'function',
  function: { name, description: 'A tool.', parameters: { type: 'object', properties: {} } },
}));

it('a session on the embedded policy records exactly what its engine scores, across an engine restart', async () => {
  const policy = await startTestPolicy();
  try {
    const engine = createVllmEngine({ url: policy.url, model: 'policy', method: 'reload', baseVersion: 0 });
    await using gateway = await startTestGateway(engine, { modelDir });
    const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 24 };
    const secret = await gateway.open('a.1', { sampling });
    const messages: object[] = [{ role: 'user', content: 'Fix total.js' }];
    for (let turn = 0; turn < 3; turn += 1) {
      if (turn === 2) await policy.restart();
      const reply = await gateway.chat(secret, { messages, tools });
      assert.equal(reply.status, 200, reply.text);
      const { message } = reply.json.choices[0];
      messages.push(message);
      for (const call of message.tool_calls ?? [])
        messages.push({ role: 'tool', tool_call_id: call.id, content: 'ok' });
      messages.push({ role: 'user', content: 'Continue.' });
    }
    const summary = await gateway.control.seal('a.1');
    assert.deepEqual([summary.turns, summary.segments, summary.minVersion, summary.maxVersion], [3, 1, 0, 0]);
    const [segment] = (await gateway.traceOf(summary)).segments;
    assert.ok(segment !== undefined);
    const scored = await policy.score(segment.tokens);
    const trained = segment.mask.flatMap((trains, at) => (trains === 1 ? [at] : []));
    assert.equal(trained.length, summary.sampledTokens);
    assert.deepEqual(
      trained.map((at) => segment.logprobs[at]),
      trained.map((at) => scored[at - 1]),
    );
  } finally {
    await policy.close();
  }
});
