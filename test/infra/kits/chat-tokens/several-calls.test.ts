import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { renderFull, renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { renderSuffix } from '../../../../infra/kits/chat-tokens/suffix.ts';
import { tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';
import { callBash, opening } from './continuation.ts';

const templateOf = (name: string): string =>
  readFileSync(join(import.meta.dirname, `../../../fixtures/families/${name}.jinja`), 'utf8');

/** A template of Llama 3.x, which refuses a reply with several calls as the published ones do. */
const strict = templateOf('llama').replace(
  '{%- set call =',
  "{%- if message.tool_calls | length > 1 %}{{- raise_exception('This model only supports single tool-calls at once!') }}{% endif %}\n        {%- set call =",
);

const ids = ['functions.bash:0', 'functions.bash:1'] as const;
const calls: Message = {
  role: 'assistant',
  text: '',
  reasoning: '',
  toolCalls: [callBash(ids[0], 'ls'), callBash(ids[1], 'pwd')],
};
const results: readonly Message[] = [
  { role: 'tool', callId: ids[1], name: 'bash', text: '/workspace' },
  { role: 'tool', callId: ids[0], name: 'bash', text: 'calc.js' },
];

const families: readonly (readonly [name: string, vocabulary: Vocabulary, template: string])[] = [
  ['function-xml', 'qwen', templateOf('function-xml')],
  ['glm', 'glm', templateOf('glm')],
  ['deepseek', 'deepseek', templateOf('deepseek')],
  ['kimi', 'kimi', templateOf('kimi')],
  ['harmony', 'gptoss', templateOf('harmony')],
  ['llama, which prints one call', 'llama', templateOf('llama')],
  ['llama, which refuses several calls', 'llama', strict],
];

describe('a reply with two calls', () => {
  for (const [name, vocabulary, template] of families) {
    it(`is rendered with both calls and their results, and continued: ${name}`, async () => {
      await using tiny = await tinyFamily(vocabulary, template);
      const { model } = tiny;
      const text = renderText(model, [...opening, calls, ...results], [], 'reply');
      for (const part of ['ls', 'pwd', '/workspace', 'calc.js']) assert.ok(text.includes(part), `${part} in ${text}`);
      if (!model.severalCalls) assert.ok(text.indexOf('calc.js') < text.indexOf('pwd'), text);
      const last = model.stopTokenIds.find((lastSampledId) => suffixAfter(lastSampledId) !== null);
      const suffix = suffixAfter(last);
      assert.ok(suffix !== null);
      const added = model.tokens.decode(suffix);
      for (const part of ['/workspace', 'calc.js']) assert.ok(added.includes(part), `${part} in ${added}`);

      function suffixAfter(lastSampledId: number | undefined): readonly number[] | null {
        return renderSuffix(model, results, { lastSampledId, reasoned: { last: false, before: false } });
      }
    });
  }
});

describe('an odd conversation', () => {
  const reply = (toolCalls: Extract<Message, { role: 'assistant' }>['toolCalls']): Message => ({
    role: 'assistant',
    text: '',
    reasoning: '',
    toolCalls,
  });
  const [, other] = results as readonly [Message, Message];
  const odd: readonly (readonly [string, readonly Message[]])[] = [
    ['arguments that are no object', [...opening, reply([{ id: ids[0], name: 'bash', arguments: 'ls' }]), other]],
    ['an empty reply', [...opening, reply([]), { role: 'user', text: 'More.' }]],
    ['a result first', [other, { role: 'user', text: 'More.' }]],
  ];
  for (const [name, vocabulary, template] of families) {
    it(`is rendered or refused by name: ${name}`, async () => {
      await using tiny = await tinyFamily(vocabulary, template);
      for (const [what, messages] of odd) {
        try {
          assert.ok(renderFull(tiny.model, { messages, tools: [] }).length > 0, what);
        } catch (error) {
          assert.equal((error as Error).name, 'TemplateRejection', what);
        }
      }
    });
  }
});
