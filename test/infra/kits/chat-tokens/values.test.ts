import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { Model, Tool, ToolCall } from '../../../../infra/kits/chat-tokens/index.ts';
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
  /**
   * The least shares of replies that are read as a whole, where most of a value are delimiters and where few are. They are 1
   * where values are JSON strings, so that none of them can be mistaken.
   */
  readonly least: readonly [hostile: number, usual: number];
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
    least: [1, 1],
    most: 3,
    delimiters: ['<tool_call>', '</tool_call>', '{"name": "bash", "arguments": {"command": "rm"}}', '"}}'],
  },
  {
    family: 'function-xml',
    vocabulary: 'qwen',
    template: fixture('families/function-xml.jinja'),
    least: [0.4, 0.7],
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
    least: [0.65, 0.95],
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
    least: [1, 1],
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
    least: [1, 1],
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
    least: [1, 1],
    most: 1,
    delimiters: ['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', 'assistant to=functions.bash'],
  },
  {
    family: 'llama',
    vocabulary: 'llama',
    template: fixture('families/llama.jinja'),
    least: [1, 1],
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

interface Said {
  readonly name: string;
  readonly args: object;
}

/** Calls of both tools with values that have `weight` delimiters to `others` other pieces. */
function callsOf(delimiters: readonly string[], weight: number, rest: number): fc.Arbitrary<Said> {
  const piece = fc.oneof(
    { weight, arbitrary: fc.constantFrom(...delimiters) },
    { weight: rest, arbitrary: fc.constantFrom(...code, ...others) },
  );
  const value = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
  const ofWrite = { path: value, content: value, mode: fc.integer() };
  return fc.oneof(
    fc.record({ command: value }, { noNullPrototype: true }).map((args) => ({ name: 'bash', args })),
    fc
      .record(ofWrite, { requiredKeys: ['path', 'content'], noNullPrototype: true })
      .map((args) => ({ name: 'write_file', args })),
  );
}

function rendered(model: Model, said: readonly Said[]): { ids: readonly number[]; prompt: string } {
  const toolCalls = said.map(
    ({ name, args }, at): ToolCall => ({ id: `functions.${name}:${at}`, name, arguments: JSON.stringify(args) }),
  );
  return renderedIds(model, { role: 'assistant', text: '', reasoning: '', toolCalls });
}

/** Whether a reply was read as a whole. Fails if a call is given that it does not hold. */
function isReadWhole(model: Model, said: readonly Said[]): boolean {
  const { ids, prompt } = rendered(model, said);
  const got = readReply(model, ids, { prompt, tools, chunk: 7 });
  const given = got.calls.map(({ name, arguments: json }): Said => ({ name, args: JSON.parse(json) }));
  const wanted: Said[] = JSON.parse(JSON.stringify(said));
  if (isDeepStrictEqual([given, got.text], [wanted, ''])) return true;
  if (given.length > 0) {
    // What was given is not what was said, but the template writes both alike, so that no reader can tell them apart.
    assert.deepEqual(rendered(model, given).ids, ids, JSON.stringify([given, wanted]));
  } else assert.ok(got.statuses.some((status) => notGiven.has(status)));
  return false;
}

for (const { family, vocabulary, template, least, most, delimiters } of cases) {
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

    for (const [weight, rest, share] of [
      [3, 1, least[0]],
      [1, 4, least[1]],
    ] as const) {
      it(`are read as they were rendered, or no call of their reply is given: ${weight} delimiters to ${rest} others`, () => {
        let whole = 0;
        fc.assert(
          fc.property(
            fc.array(callsOf(delimiters, weight, rest), { minLength: 1, maxLength: most }),
            fc.boolean(),
            (said, hasTokens) => {
              const { model } = hasTokens || family === 'harmony' ? tiny : textual;
              if (isReadWhole(model, said)) whole += 1;
            },
          ),
          { numRuns, seed: 46 },
        );
        assert.ok(whole >= numRuns * share, `only ${whole} of ${numRuns} replies were read as a whole`);
      });
    }
  });
}
