import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { buildSegments } from '../../../../infra/gateway/branches/segments.ts';
import { createTokenLedger } from '../../../../infra/gateway/branches/token-ledger.ts';
import type { TurnRecord } from '../../../../infra/gateway/branches/turn-record.ts';
import {
  type AssistantMessage,
  type Conversation,
  loadModel,
  type Message,
  type Model,
  renderFull,
  renderText,
} from '../../../../infra/kits/chat-tokens/index.ts';
import { idsOf } from '../../../helpers/engine/prompt-ids.ts';
import { finishTurn } from '../../../helpers/gateway/conversation.ts';
import { type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';

let dir: TinyModel;
let model: Model;
before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
});
after(() => dir[Symbol.asyncDispose]());

const tools = [{ name: 'bash', description: null, parameters: { type: 'object' } }];

/** Returns the ids that a model would have sampled for this text. */
function sampledFor(conversation: Conversation, reply: AssistantMessage): number[] {
  const text = renderText(model, [...conversation.messages, reply], conversation.tools, 'last-message');
  const prompt = renderText(model, conversation.messages, conversation.tools, 'reply');
  return model.tokens.encode(text.slice(prompt.length).trimEnd());
}

const word = fc.constantFrom('a', 'fix é', '🦊', '{"x": 1}', '<b>', 'two\nlines', '0');
const call = fc.record({
  id: word,
  name: fc.constant('bash'),
  arguments: fc.constantFrom('{"a": 1}', '{}', '{"b": [true]}'),
});
const said = fc.record({
  role: fc.constant('assistant' as const),
  text: word,
  reasoning: fc.constant(''),
  toolCalls: fc.array(call, { maxLength: 2 }),
});
const asked = fc.oneof(
  fc.record({ role: fc.constant('user' as const), text: word }),
  fc.record({ role: fc.constant('tool' as const), callId: word, name: fc.constant(null), text: word }),
);
/** A request: the turn that it continues (its index, modulo the number so far; -1: none), what it adds, and the reply. */
const step = fc.record({
  from: fc.integer({ min: -1, max: 30 }),
  added: fc.array(asked, { minLength: 1, maxLength: 3 }),
  reply: said,
  system: fc.constantFrom('', 'Be brief.', 'Make a title.'),
});

describe('the ledger', () => {
  it('continues any branch as the template would render it, and never changes sampled tokens', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        const ledger = createTokenLedger(model);
        const conversations: Conversation[] = [];
        for (const { from, added, reply, system } of steps) {
          const base = conversations[from < 0 || conversations.length === 0 ? -1 : from % conversations.length];
          const start: Message[] = system === '' ? [] : [{ role: 'system', text: system }];
          const messages = [...(base?.messages ?? start), ...added];
          const conversation = { messages, tools };
          const plan = ledger.plan(conversation);
          if (ledger.answered(plan.key) !== null) continue;
          assert.deepEqual(idsOf(plan.prompt), renderFull(model, conversation));
          if (base !== undefined) assert.notEqual(plan.parent, null, 'a provable extension is no fork');
          finishTurn(ledger, plan, reply, sampledFor(conversation, reply));
          conversations.push({ messages: [...messages, reply], tools });
        }
        assertTrainedOnce(ledger.turns);
      }),
      { numRuns: 60 },
    );
  });

  it('finds the branch again, however clients echo a reply', () => {
    const ledger = createTokenLedger(model);
    const first: Message[] = [{ role: 'user', text: 'x' }];
    const reply: AssistantMessage = {
      role: 'assistant',
      text: 'Look.\n',
      reasoning: 'hm',
      toolCalls: [{ id: 'a', name: 'bash', arguments: '{"b": 1.0, "a": "x"}' }],
    };
    finishTurn(ledger, ledger.plan({ messages: first, tools }), reply, [65]);
    const echo: AssistantMessage = {
      role: 'assistant',
      text: ' Look.',
      reasoning: '',
      toolCalls: [{ id: 'other', name: 'bash', arguments: '{"a":"x","b":1}' }],
    };
    const next: Message = { role: 'user', text: 'y' };
    const follow = (message: AssistantMessage) => ledger.plan({ messages: [...first, message, next], tools }).parent;
    assert.equal(follow(echo), 0);
    assert.equal(follow({ ...echo, text: 'Look!' }), null);
    assert.equal(follow({ ...echo, toolCalls: [] }), null);
    assert.equal(ledger.plan({ messages: [...first, echo], tools }).parent, null, 'a reply to be continued is a fork');
    assert.equal(ledger.plan({ messages: [...first, echo, next], tools: [] }).parent, null, 'other tools are a fork');
  });

  it('costs only what is new, in a session of 1,000 turns and a tree of 500 branches', () => {
    const { tokens } = model;
    let encoded = 0;
    const encode = (text: string): number[] => {
      encoded += text.length;
      return tokens.encode(text);
    };
    const ledger = createTokenLedger({ ...model, tokens: { ...tokens, encode } });
    const costs: number[] = [];
    const ask = (messages: readonly Message[], reply: AssistantMessage): void => {
      encoded = 0;
      const plan = ledger.plan({ messages, tools });
      costs.push(encoded);
      finishTurn(ledger, plan, reply, [65, 258]);
    };
    const messages: Message[] = [{ role: 'user', text: 'Begin.' }];
    for (let turn = 0; turn < 1_000; turn += 1) {
      const id = `call_${turn}`;
      const toolCalls = [{ id, name: 'bash', arguments: JSON.stringify({ x: turn % 10 }) }];
      const reply = { role: 'assistant', text: 'ok', reasoning: '', toolCalls } as const;
      ask(messages, reply);
      messages.push(reply, { role: 'tool', callId: id, name: null, text: `result ${1_000 + turn}` });
    }
    assert.equal(ledger.forks, 0);
    for (let branch = 0; branch < 500; branch += 1) {
      const turned: Message[] = [...messages.slice(0, 21), { role: 'user', text: `branch ${1_000 + branch}` }];
      ask(turned, { role: 'assistant', text: `answer ${branch}`, reasoning: '', toolCalls: [] });
    }
    // Behind the first turns, which find out how the template ends a reply.
    const [cost, ...others] = costs.slice(2, 1_000);
    assert.deepEqual(new Set(others), new Set([cost]));
    assert.equal(new Set(costs.slice(1_001)).size, 1);
    const sizes = ledger.turns.map((turn) => JSON.stringify(turn).length);
    assert.ok(Math.max(...sizes.slice(1)) < 1_500, 'nor does the journal hold the history again');
    const { segments, classification } = buildSegments(ledger.turns);
    assert.deepEqual([segments.length, ledger.forks, classification.unclear], [501, 0, 0]);
    assertTrainedOnce(ledger.turns);
  });
});

function assertTrainedOnce(turns: readonly TurnRecord[]): void {
  const trained = buildSegments(turns).segments.flatMap(({ tokens, mask }) => tokens.filter((_, at) => mask[at] === 1));
  const sampled = turns.flatMap(({ sampledIds }) => sampledIds);
  assert.deepEqual(trained.toSorted(), sampled.toSorted());
}

it('a template that drops earlier reasoning begins a new branch, whichever reply had the reasoning', async () => {
  const template = `{%- set ns = namespace(user=-1) %}
    {%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.user = loop.index0 %}{%- endif %}{%- endfor %}
    {%- for m in messages %}
        {{- '<|im_start|>' + m.role + '\\n' }}
        {%- if m.reasoning_content and loop.index0 > ns.user %}{{- '<think>' + m.reasoning_content + '</think>' }}{%- endif %}
        {{- m.content }}
        {%- for c in m.tool_calls or [] %}{{- '<tool_call>' + (c.function.arguments | tojson) + '</tool_call>' }}{%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endfor %}
    {%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;
  await using other = await writeTinyModel(template);
  const ledger = createTokenLedger(await loadModel(other.dir));
  const end = [258];
  const toolCalls = [{ id: 'a', name: 'bash', arguments: '{}' }];
  const thinking: AssistantMessage = { role: 'assistant', text: '', reasoning: 'hm', toolCalls };
  const silent: AssistantMessage = { role: 'assistant', text: 'Done.', reasoning: '', toolCalls: [] };
  const asked: readonly Message[] = [{ role: 'user', text: 'Go.' }];
  // The client drops the reasoning, as clients do.
  const called: readonly Message[] = [
    ...asked,
    { ...thinking, reasoning: '' },
    { role: 'tool', callId: 'a', name: null, text: '' },
  ];
  finishTurn(ledger, ledger.plan({ messages: asked, tools }), thinking, end);
  const second = ledger.plan({ messages: called, tools });
  assert.equal(second.parent, 0, 'a tool result keeps it');
  finishTurn(ledger, second, silent, end);
  const third = ledger.plan({ messages: [...called, silent, { role: 'user', text: 'More.' }], tools });
  assert.equal(third.parent, null, 'a user turn does not');
});
