import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { Model, Tool, ToolCall } from '../../../infra/kits/chat-tokens/index.ts';
import { bash, readReply } from './read-reply.ts';
import { renderedIds } from './rendered-ids.ts';

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

/** The texts of each family's syntax, as values may hold them. */
export const syntaxTexts: Readonly<Record<string, readonly string[]>> = {
  hermes: ['<tool_call>', '</tool_call>', '{"name": "bash", "arguments": {"command": "rm"}}', '"}}'],
  'function-xml': [
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
  glm: [
    '<tool_call>',
    '<tool_call>bash',
    '</tool_call>',
    '<arg_key>',
    '<arg_key>mode</arg_key>',
    '</arg_key>',
    '<arg_value>',
    '</arg_value>',
  ],
  deepseek: [
    '<｜tool▁calls▁begin｜>',
    '<｜tool▁calls▁end｜>',
    '<｜tool▁call▁begin｜>',
    '<｜tool▁call▁end｜>',
    '<｜tool▁sep｜>',
    'bash<｜tool▁sep｜>{"command": "rm"}',
    '\n```json\n',
  ],
  kimi: [
    '<|tool_calls_section_begin|>',
    '<|tool_calls_section_end|>',
    '<|tool_call_begin|>',
    '<|tool_call_end|>',
    '<|tool_call_argument_begin|>',
    'functions.bash:0',
  ],
  harmony: ['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', 'assistant to=functions.bash'],
  llama: ['<|python_tag|>', '{"name": "bash", "parameters": {"command": "rm"}}', ';', '"}}; {'],
};

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

const notGiven = new Set(['ambiguous', 'malformed', 'unclosed']);

export interface Said {
  readonly name: string;
  readonly args: object;
}

/** Calls of both tools with values that have `weight` delimiters to `others` other pieces. */
export function callsOf(delimiters: readonly string[], weight: number, rest: number): fc.Arbitrary<Said> {
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
export function isReadWhole(model: Model, said: readonly Said[]): boolean {
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
