import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import type { Message, Tool } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { callsOf, isReadWhole, syntaxTexts } from '../../../helpers/models/random-calls.ts';
import { bash } from '../../../helpers/models/read-reply.ts';
import { type TinyFamily, tinyFamily, vocabularyOf } from '../../../helpers/models/tiny-families.ts';
import { optionalData } from '../../../helpers/optional-data.ts';

const { templates } = z
  .object({ templates: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(optionalData.chatTemplates, 'utf8')));

const system = (text: string): Message => ({ role: 'system', text });
const user = (text: string): Message => ({ role: 'user', text });
const reply = (text: string): Message => ({ role: 'assistant', text, reasoning: '', toolCalls: [] });
const id = 'functions.bash:0';
const called = (args: string): Message => ({
  role: 'assistant',
  text: '',
  reasoning: '',
  toolCalls: [{ id, name: 'bash', arguments: args }],
});
const result: Message = { role: 'tool', callId: id, name: 'bash', text: 'Result.' };

const conversations: readonly (readonly Message[])[] = [
  [system('A.')],
  [system('A.'), system('B.')],
  [system('A.'), system('B.'), system('C.'), user('D.')],
  [system('A.'), user('B.'), reply('C.'), system('D.'), user('E.')],
  [user('A.'), reply('B.'), system('C.')],
  [system('A.'), user('B.'), system('C.'), user('D.'), reply('E.'), user('F.')],
];

const objects = ['{"a": null}', '{"a": [null, {"b": null}]}', '{"a": true, "b": 1e300, "c": 1.5}'];
const echoed = ['', ' \n', 'null', '{"a": "b', '[1]', '7', '"ls"', '['.repeat(100) + ']'.repeat(100), ...objects];

const property = (a: unknown): Tool => ({
  name: 'f',
  description: 'Does.',
  parameters: { type: 'object', properties: { a } },
});
const tools: readonly Tool[] = [
  { name: 'f', description: null, parameters: null },
  { name: 'f', description: null, parameters: { type: 'object', properties: {} } },
  { name: 'f', description: 'Does.', parameters: {} },
  { name: 'f', description: 'Does.', parameters: { type: 'object', properties: { a: {} }, required: null } },
  property({ type: 'string', description: null, default: null }),
  property({ type: ['string', 'null'], enum: ['a', null] }),
  property({ anyOf: [{ type: 'string' }, { type: 'null' }], default: null }),
  property({ type: 'array', items: { type: 'object', additionalProperties: false } }),
  property(true),
];

for (const [name, template] of Object.entries(templates)) {
  describe(`the template ${name}`, () => {
    let tiny: TinyFamily;
    before(async () => {
      tiny = await tinyFamily(vocabularyOf(name), template);
    });
    after(() => tiny[Symbol.asyncDispose]());

    it('prints every system message, in its order', () => {
      for (const messages of conversations) {
        for (const offered of [[], [bash]]) {
          const text = renderText(tiny.model, messages, offered, 'reply');
          let at = 0;
          for (const { text: part } of messages) {
            at = text.indexOf(part, at);
            assert.ok(at >= 0, `${part} in ${text}`);
          }
        }
      }
    });

    it('renders echoed calls with empty, null or broken arguments, and tools as clients describe them', () => {
      const { model } = tiny;
      for (const args of echoed) {
        const messages = [user('A.'), called(args), result, user('B.')];
        assert.ok(renderText(model, messages, [bash], 'reply').includes('Result.'), args);
      }
      for (const tool of tools) renderText(model, [user('A.')], [tool], 'reply');
    });

    it('writes random calls that are read as they are, or not given', () => {
      const { model } = tiny;
      if (model.family.name === 'plain') return;
      const delimiters = syntaxTexts[model.family.name] ?? assert.fail(model.family.name);
      const most = model.severalCalls ? 3 : 1;
      fc.assert(
        fc.property(fc.array(callsOf(delimiters, 1, 2), { minLength: 1, maxLength: most }), (said) => {
          isReadWhole(model, said);
        }),
        { numRuns: 100, seed: 46 },
      );
    });
  });
}
