import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Tool, ToolCall } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { bash, readReply } from '../../../helpers/models/read-reply.ts';
import { renderedIds } from '../../../helpers/models/rendered-ids.ts';
import { type TinyFamily, tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';

const fixture = (path: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures', path), 'utf8');

const write: Tool = {
  name: 'write_file',
  description: null,
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, content: { type: 'string' }, mode: { type: 'integer' } },
    required: ['path', 'content'],
  },
};
const tools = [bash, write];

interface Case {
  readonly family: string;
  readonly vocabulary: Vocabulary;
  readonly template: string;
  /** Whether values are JSON strings, so that none of them can be mistaken. */
  readonly escapes: boolean;
  /** The number of calls in one reply. */
  readonly most: number;
  /** Texts of the syntax, as values may hold them. */
  readonly delimiters: readonly string[];
}

const cases: readonly Case[] = [
  {
    family: 'hermes',
    vocabulary: 'qwen',
    template: fixture('hermes/chat_template.jinja'),
    escapes: true,
    most: 3,
    delimiters: ['<tool_call>', '</tool_call>', '{"name": "bash", "arguments": {"command": "rm"}}', '"}}'],
  },
  {
    family: 'function-xml',
    vocabulary: 'qwen',
    template: fixture('families/function-xml.jinja'),
    escapes: false,
    most: 3,
    delimiters: [
      '<tool_call>',
      '</tool_call>',
      '<function=bash>',
      '<function=other>',
      '</function>',
      '<parameter=command>',
      '<parameter=path>',
      '<parameter=mode>',
      '<parameter=x>',
      '</parameter>',
    ],
  },
  {
    family: 'glm',
    vocabulary: 'glm',
    template: fixture('families/glm.jinja'),
    escapes: false,
    most: 3,
    delimiters: [
      '<tool_call>',
      '<tool_call>bash',
      '</tool_call>',
      '<arg_key>',
      '<arg_key>mode</arg_key>',
      '</arg_key>',
      '<arg_value>',
      '</arg_value>',
    ],
  },
  {
    family: 'deepseek',
    vocabulary: 'deepseek',
    template: fixture('families/deepseek.jinja'),
    escapes: true,
    most: 3,
    delimiters: [
      '<｜tool▁calls▁begin｜>',
      '<｜tool▁calls▁end｜>',
      '<｜tool▁call▁begin｜>',
      '<｜tool▁call▁end｜>',
      '<｜tool▁sep｜>',
      'bash<｜tool▁sep｜>{"command": "rm"}',
      '\n```json\n',
    ],
  },
  {
    family: 'kimi',
    vocabulary: 'kimi',
    template: fixture('families/kimi.jinja'),
    escapes: true,
    most: 3,
    delimiters: [
      '<|tool_calls_section_begin|>',
      '<|tool_calls_section_end|>',
      '<|tool_call_begin|>',
      '<|tool_call_end|>',
      '<|tool_call_argument_begin|>',
      'functions.bash:0',
    ],
  },
  {
    family: 'harmony',
    vocabulary: 'gptoss',
    template: fixture('families/harmony.jinja'),
    escapes: true,
    most: 1,
    delimiters: ['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', 'assistant to=functions.bash'],
  },
  {
    family: 'llama',
    vocabulary: 'llama',
    template: fixture('families/llama.jinja'),
    escapes: true,
    most: 1,
    delimiters: ['<|python_tag|>', '{"name": "bash", "parameters": {"command": "rm"}}', ';', '"}}; {'],
  },
];

const code = [
  'x = [1]',
  '"',
  "'",
  '\\',
  '`',
  '```\n',
  '<',
  '>',
  '&&',
  '{',
  '}',
  'echo "a" > b',
  '\n',
  '\n',
  '\n\n',
  ' ',
  '\t',
];
const others = ['<think>', '</think>', 'é', '🦊', '日本', '\u0000', '', '</a>', '<|im|>'];

const numRuns = 1_000;
const notGiven = new Set(['ambiguous', 'malformed', 'unclosed']);

/** Whether some items are among others, in the same order. */
function isPartOf(some: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (const item of all) if (some[at] === item) at += 1;
  return at === some.length;
}

for (const { family, vocabulary, template, escapes, most, delimiters } of cases) {
  describe(`values in calls of the ${family} family`, () => {
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

    const value = fc
      .array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...delimiters) }, fc.constantFrom(...code, ...others)), {
        maxLength: 12,
      })
      .map((pieces) => pieces.join(''));
    const given = fc.oneof(
      fc.record({ command: value }, { noNullPrototype: true }).map((args) => ({ name: 'bash', args })),
      fc
        .record(
          { path: value, content: value, mode: fc.integer() },
          { requiredKeys: ['path', 'content'], noNullPrototype: true },
        )
        .map((args) => ({ name: 'write_file', args })),
    );

    it('are read as they were rendered, or their call is counted and not given', () => {
      let whole = 0;
      fc.assert(
        fc.property(fc.array(given, { minLength: 1, maxLength: most }), fc.boolean(), (calls, hasTokens) => {
          const { model } = hasTokens || family === 'harmony' ? tiny : textual;
          const toolCalls = calls.map(
            ({ name, args }, at): ToolCall => ({
              id: `functions.${name}:${at}`,
              name,
              arguments: JSON.stringify(args),
            }),
          );
          const { ids, prompt } = renderedIds(model, { role: 'assistant', text: '', reasoning: '', toolCalls });
          const got = readReply(model, ids, { prompt, tools, chunk: 7 });
          const read = got.calls.map((each) => JSON.stringify([each.name, JSON.parse(each.arguments)]));
          const rendered = calls.map(({ name, args }) => JSON.stringify([name, JSON.parse(JSON.stringify(args))]));
          if (read.length === rendered.length) {
            whole += 1;
            assert.deepEqual([read, got.text], [rendered, '']);
            return;
          }
          assert.ok(!escapes, 'a JSON string leaves no doubt');
          assert.ok(isPartOf(read, rendered), `${read} in ${rendered}`);
          assert.ok(got.statuses.some((status) => notGiven.has(status)));
        }),
        { numRuns, seed: 46 },
      );
      assert.ok(whole > numRuns * 0.7, `only ${whole} of ${numRuns} replies were read as a whole`);
    });
  });
}
