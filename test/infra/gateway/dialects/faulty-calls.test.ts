import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';

const parameters = { type: 'object', properties: { command: { type: 'string' } } };
const about = { name: 'bash', description: 'Runs.' };
const next = 'No tool was called.';

/** The requests of an agent: what it asks first, and what it sends once it has read the reply. */
interface Client {
  readonly path: string;
  readonly first: object;
  // biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
  following(reply: any): object;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  callsIn(reply: any): number;
}

const user = { role: 'user', content: 'Go.' };
const nudge = { role: 'user', content: next };
const anthropic = { model: 'policy', max_tokens: 100, tools: [{ ...about, input_schema: parameters }] };
const chat = { tools: [{ type: 'function', function: { ...about, parameters } }] };
const responses = { tools: [{ type: 'function', ...about, parameters }] };

const clients: Readonly<Record<string, Client>> = {
  'chat completions': {
    path: '/v1/chat/completions',
    first: { ...chat, messages: [user] },
    following: ({ choices: [{ message }] }) => ({ ...chat, messages: [user, message, nudge] }),
    callsIn: ({ choices: [{ message }] }) => message.tool_calls?.length ?? 0,
  },
  messages: {
    path: '/v1/messages',
    first: { ...anthropic, messages: [user] },
    following: ({ content }) => ({ ...anthropic, messages: [user, { role: 'assistant', content }, nudge] }),
    callsIn: ({ content }) => content.filter(({ type }: { type: string }) => type === 'tool_use').length,
  },
  responses: {
    path: '/v1/responses',
    first: { ...responses, input: [user] },
    following: ({ output }) => ({ ...responses, input: [user, ...output, nudge] }),
    callsIn: ({ output }) => output.filter(({ type }: { type: string }) => type === 'function_call').length,
  },
};

const call = (text: string): string => `<tool_call>\n${text}\n</tool_call>`;
const faulty: readonly (readonly [status: string, said: string])[] = [
  ['unclosed', '<tool_call>\n{"name": "bash", "arguments": {"command": "a"'],
  ['invalid-json', call('{"name": "bash", "arguments": {"command": "a"')],
  ['invalid-json', call('{"name": "bash", "arguments": {"command": "a"}} and more')],
  ['missing-name', call('{"arguments": {"command": "a"}}')],
];

describe('a malformed tool call', () => {
  for (const [name, { path, first, following, callsIn }] of Object.entries(clients)) {
    for (const [status, said] of faulty) {
      it(`reaches the agent as text, is counted, and the conversation continues: ${name}, ${said.replaceAll('\n', ' ')}`, async () => {
        const replies = [`${said}<|im_end|>`, 'Done.<|im_end|>'];
        const engine = createScriptedEngine({
          script: (_, index) => ({ kind: 'say', ids: gateway.model.tokens.encode(replies[index] ?? '') }),
        });
        await using gateway = await startTestGateway(engine);
        const secret = await gateway.open('s1.1');
        const reply = await gateway.post(path, secret, first);
        assert.deepEqual([reply.status, callsIn(reply.json)], [200, 0], reply.text);
        assert.ok(JSON.stringify(reply.json).includes(JSON.stringify(said).slice(1, -1)), reply.text);
        const second = await gateway.post(path, secret, following(reply.json));
        assert.equal(second.status, 200, second.text);
        const summary = await gateway.control.seal('s1.1');
        const trace = await gateway.traceOf(summary);
        assert.deepEqual([summary.turns, summary.segments, trace.faultyCalls], [2, 1, { [status]: 1 }]);
      });
    }
  }

  it('that the agent leaves without a result refuses no later request', async () => {
    const engine = createScriptedEngine({
      script: () => ({ kind: 'say', ids: gateway.model.tokens.encode('Done.<|im_end|>') }),
    });
    await using gateway = await startTestGateway(engine);
    const secret = await gateway.open('s1.1');
    const orphan = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'bash', arguments: '{}' } }],
    };
    const reply = await gateway.chat(secret, { ...chat, messages: [user, orphan, nudge] });
    assert.equal(reply.status, 200, reply.text);
  });
});
