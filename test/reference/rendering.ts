import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { openaiChat } from '../../infra/gateway/dialects/openai-chat/index.ts';
import {
  type Conversation,
  continueBranch,
  loadModel,
  type Model,
  renderFull,
} from '../../infra/kits/chat-tokens/index.ts';
import type { ReferenceStack } from './stack.ts';

const tools = [
  {
    type: 'function',
    function: {
      name: 'bash',
      description: 'Runs a command and gives what it prints.',
      parameters: {
        type: 'object',
        properties: { command: { type: 'string', description: 'what to run' }, seconds: { type: 'integer' } },
        required: ['command'],
      },
    },
  },
  { type: 'function', function: { name: 'submit', description: 'Ends the task.', parameters: { type: 'object' } } },
];
const call = (id: string, args: object) => ({
  id,
  type: 'function',
  function: { name: 'bash', arguments: JSON.stringify(args) },
});
const asked = [
  { role: 'system', content: 'You fix bugs. Be brief.' },
  { role: 'user', content: 'sum.js adds up wrongly: 2 + 2 = 5 „immer“, 수정해 주세요 🙂\n\n```js\nx => x\n```' },
];
const looked = { role: 'assistant', content: 'I look.', tool_calls: [call('a', { command: 'cat sum.js' })] };
const answered = { role: 'tool', tool_call_id: 'a', content: 'export const sum = (a, b) => a - b; // <tool_call>\n' };
const both = {
  role: 'assistant',
  content: '',
  tool_calls: [call('b', { command: 'ls -l "a b"', seconds: 5 }), call('c', { command: 'echo "é\\n"' })],
};

const conversations: readonly { readonly name: string; readonly body: { messages: object[]; tools?: object[] } }[] = [
  { name: 'one question', body: { messages: [{ role: 'user', content: 'Hello.' }] } },
  { name: 'a system message and tools', body: { messages: asked, tools } },
  { name: 'a call and its result', body: { messages: [...asked, looked, answered], tools } },
  {
    name: 'parallel calls and their results',
    body: {
      messages: [
        ...asked,
        looked,
        answered,
        both,
        { role: 'tool', tool_call_id: 'b', content: 'total 0' },
        { role: 'tool', tool_call_id: 'c', content: '' },
      ],
      tools,
    },
  },
  {
    name: 'a question after an answer',
    body: { messages: [...asked, { role: 'assistant', content: 'Done.' }, { role: 'user', content: 'Sure?' }], tools },
  },
  {
    name: 'text in parts',
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'One.' },
            { type: 'text', text: 'Two.' },
          ],
        },
      ],
    },
  },
];

export const testRendering = (open: () => Promise<ReferenceStack>) =>
  describe('temper renders the same tokens as a real vLLM', () => {
    let stack: ReferenceStack;
    let model: Model;

    before(async () => {
      stack = await open();
      model = await loadModel(stack.modelDir);
    });

    /** Renders by another implementation of the same template. */
    async function renderedByVllm(body: object): Promise<readonly number[]> {
      const response = await fetch(`${stack.vllmUrl}/v1/chat/completions/render`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        // The server was started without a parser for tool calls, but still renders the tools.
        body: JSON.stringify({ model: stack.vllmModel, ...body, tool_choice: 'none' }),
      });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      return (JSON.parse(text) as { token_ids: number[] }).token_ids;
    }
    const conversationOf = (body: object): Conversation =>
      openaiChat.read({ model: 'policy', ...body } as never).conversation;

    for (const { name, body } of conversations) {
      it(name, async () => {
        const ours = renderFull(model, conversationOf(body));
        const theirs = await renderedByVllm(body);
        assert.equal(model.tokens.decode(ours), model.tokens.decode(theirs));
        assert.deepEqual(ours, theirs);
      });
    }

    it('a branch that continues by its new messages alone', async () => {
      const opening = conversationOf({ messages: asked, tools });
      const whole = { messages: [...asked, looked, answered], tools };
      const promptIds = renderFull(model, opening);
      const theirs = await renderedByVllm(whole);
      // The tokens that the policy would have sampled for that call, including the end of its turn.
      const end = theirs.findIndex((id, at) => at >= promptIds.length && model.stopTokenIds.includes(id));
      const sampledIds = theirs.slice(promptIds.length, end + 1);
      const added = conversationOf(whole).messages.slice(-1);
      const continued = continueBranch(model, added, {
        lastSampledId: sampledIds.at(-1),
        reasoned: { last: false, before: false },
      });
      assert.ok('ids' in continued, JSON.stringify(continued));
      assert.deepEqual([...promptIds, ...sampledIds, ...continued.ids], theirs);
    });
  });
