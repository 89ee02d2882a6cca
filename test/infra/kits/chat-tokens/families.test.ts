import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Message, Tool } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { bash, type Reply, readReply } from '../../../helpers/models/read-reply.ts';
import { renderedIds } from '../../../helpers/models/rendered-ids.ts';
import { delimitersOf, type TinyFamily, tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

const fixture = (path: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures', path), 'utf8');

interface Case {
  readonly family: string;
  readonly vocabulary: Vocabulary;
  readonly template: string;
  /** Whether the syntax allows text beside a call, and more than one call. */
  readonly textBeside: boolean;
  readonly parallel: boolean;
  /** Fragments of the syntax that are no tokens. */
  readonly fragments: readonly string[];
}

const cases: readonly Case[] = [
  {
    family: 'hermes',
    vocabulary: 'qwen',
    template: fixture('hermes/chat_template.jinja'),
    textBeside: true,
    parallel: true,
    fragments: ['{"name": "bash", "arguments": {}}', '{"name": '],
  },
  {
    family: 'function-xml',
    vocabulary: 'qwen',
    template: fixture('families/function-xml.jinja'),
    textBeside: true,
    parallel: true,
    fragments: ['<function=bash>', '<parameter=command>', '</parameter>', '</function>', '<function=', '\n'],
  },
  {
    family: 'glm',
    vocabulary: 'glm',
    template: fixture('families/glm.jinja'),
    textBeside: true,
    parallel: true,
    fragments: ['bash', 'command'],
  },
  {
    family: 'deepseek',
    vocabulary: 'deepseek',
    template: fixture('families/deepseek.jinja'),
    textBeside: true,
    parallel: true,
    fragments: ['function', 'bash', '\n```json\n', '{}', '\n```'],
  },
  {
    family: 'kimi',
    vocabulary: 'kimi',
    template: fixture('families/kimi.jinja'),
    textBeside: true,
    parallel: true,
    fragments: ['functions.bash:0', ':', '{"command": "ls"}'],
  },
  {
    family: 'harmony',
    vocabulary: 'gptoss',
    template: fixture('families/harmony.jinja'),
    textBeside: false,
    parallel: false,
    fragments: ['analysis', 'commentary to=functions.bash ', 'final', 'json', 'assistant', '{}'],
  },
  {
    family: 'llama',
    vocabulary: 'llama',
    template: fixture('families/llama.jinja'),
    textBeside: false,
    parallel: false,
    fragments: ['{"name": "bash", "parameters": {}}', '{"name": "bash"', '{"a": 1}', ';', '}', '"'],
  },
  {
    family: 'plain',
    vocabulary: 'qwen',
    template: "{% for m in messages %}{{ m.role + m.content + '<|im_end|>' }}{% endfor %}",
    textBeside: true,
    parallel: true,
    fragments: ['```bash\n', '\n```\n', '```', '\n'],
  },
];

const typed: Tool = {
  name: 'edit',
  description: null,
  parameters: {
    type: 'object',
    properties: {
      text: { type: 'string' },
      count: { type: 'integer' },
      share: { type: ['number', 'null'] },
      all: { type: 'boolean' },
      lines: { type: 'array', items: { type: 'integer' } },
      options: { anyOf: [{ type: 'object' }, { type: 'null' }] },
    },
  },
};

const json = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null));
const args = fc.record(
  {
    text: fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('\n\na = [1]\r\n', 'true', '</parameter>', ' {"a": 1} ', '"', '```\n'),
    ),
    count: fc.integer(),
    share: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null)),
    all: fc.boolean(),
    lines: fc.array(fc.integer()),
    options: fc.oneof(fc.dictionary(fc.string({ minLength: 1 }), json), fc.constant(null)),
  },
  { requiredKeys: [], noNullPrototype: true },
);

for (const { family, vocabulary, template, textBeside, parallel, fragments } of cases) {
  describe(`the ${family} family`, () => {
    let tiny: TinyFamily;
    let textual: TinyFamily;
    before(async () => {
      tiny = await tinyFamily(vocabulary, template);
      textual = await tinyFamily(vocabulary, template, false);
    });
    after(async () => {
      await tiny[Symbol.asyncDispose]();
      await textual[Symbol.asyncDispose]();
    });

    it('is recognized by the structure of the template', () => {
      assert.equal(tiny.model.family.name, family);
    });

    it('reads a long reply of blanks in time in proportion to its length', () => {
      const blanks = Array<number>(50_000).fill(tiny.model.tokens.encode(' ')[0] ?? assert.fail());
      const seconds = userSeconds(() => assert.equal(readReply(tiny.model, blanks).text, ''));
      // It takes a second; one that looks at all blanks again with each takes half a minute.
      assert.ok(seconds < 6, `took ${seconds} s`);
    });

    it('reads what the template renders', () => {
      // A template of this family prints no calls.
      if (family === 'plain') return assert.equal(tiny.model.argumentsForm, 'none');
      const call = fc.record({ name: fc.constantFrom('edit', 'bash'), given: args });
      fc.assert(
        fc.property(fc.array(call, { minLength: 1, maxLength: parallel ? 3 : 1 }), fc.boolean(), (calls, marked) => {
          const toolCalls = calls.map(({ name, given }, index) => ({
            id: `functions.${name}:${index}`,
            name,
            arguments: JSON.stringify(name === 'edit' ? given : { command: given.text ?? '' }),
          }));
          const text = textBeside ? 'I look.' : '';
          const reply: Message = { role: 'assistant', text, reasoning: '', toolCalls };
          const from = marked || family === 'harmony' ? tiny : textual;
          const { ids, prompt } = renderedIds(from.model, reply);
          const read = readReply(from.model, ids, { prompt, tools: [typed, bash], chunk: 5 });
          assert.deepEqual(
            read.calls.map((got) => [got.name, JSON.parse(got.arguments)]),
            toolCalls.map((want) => [want.name, JSON.parse(want.arguments)]),
          );
          assert.deepEqual([read.text, new Set(read.statuses)], [text, new Set(['ok'])]);
        }),
        { numRuns: 150 },
      );
    });

    const piece = fc.oneof(
      fc.constantFrom(...delimitersOf(vocabulary), ...fragments, '<|im_end|>', ' \n', 'word', '"', 'é', '🦊'),
      fc.integer({ min: 0, max: 300 }),
    );

    it('reads any ids the same in any chunks, and special tokens alone never become text', () => {
      fc.assert(
        fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 2, max: 9 }), (pieces, chunk) => {
          for (const { model } of [tiny, textual]) {
            const ids = pieces.flatMap((each) => (typeof each === 'number' ? [each] : model.tokens.encode(each)));
            const whole = readReply(model, ids);
            assert.deepEqual(readReply(model, ids, { chunk }).events, whole.events);
            assert.ok(!/<\|im_(?:start|end)\|>/.test(everything(whole)) || family === 'kimi');
          }
        }),
        { numRuns: 200 },
      );
    });

    it('loses no text', () => {
      // The words of a harmony header are not part of the reply's text: they name its role and channel.
      const spoken = family === 'harmony' ? fragments : [...delimitersOf(vocabulary), ...fragments];
      fc.assert(
        fc.property(fc.array(fc.constantFrom(...spoken), { maxLength: 20 }), (pieces) => {
          const words = pieces.map((_, index) => `word${index}.`);
          const ids = tiny.model.tokens.encode(pieces.map((each, index) => `${words[index]}${each}`).join(''));
          const decoded = everything(readReply(tiny.model, ids));
          for (const word of words) assert.ok(decoded.includes(word), `${word} in ${decoded}`);
        }),
        { numRuns: 200 },
      );
    });
  });
}

const everything = ({ events }: Reply): string =>
  events.map((event) => ('text' in event ? event.text : event.call.raw)).join('|');
