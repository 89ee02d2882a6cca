import type { AssistantMessage } from './conversation.ts';
import { createCommandParser } from './tools/command.ts';
import { createDeepSeekParser } from './tools/deepseek.ts';
import { createFunctionXmlParser } from './tools/function-xml.ts';
import { createGlmParser } from './tools/glm.ts';
import { createHarmonyParser } from './tools/harmony.ts';
import { createHermesParser } from './tools/hermes.ts';
import { createKimiParser, kimiCallIds } from './tools/kimi.ts';
import { createLlamaParser } from './tools/llama.ts';
import type { ParserFactory, ReplyContext, ReplyParser } from './tools/parser.ts';

/** The properties that models of one family share, beyond those that a chat template states. */
export interface Family {
  readonly name: string;
  /** Tokens that end the model's turn, where the vocabulary has them, in addition to the configured ones. */
  readonly turnClose: readonly string[];
  readonly createParser: (context: ReplyContext) => ReplyParser;
  /** A reply's text and reasoning, under the field names that the template reads. */
  readonly replyFields: (reply: AssistantMessage) => Readonly<Record<string, string>>;
  /** The form of call ids that the model expects; null where any id will do. */
  readonly callIds: CallIds | null;
}

export interface CallIds {
  readonly isValid: (id: string) => boolean;
  /** Makes a valid id. `index` counts the calls of the whole conversation. */
  readonly make: (name: string, index: number) => string;
}

interface Detection extends Omit<Family, 'createParser'> {
  readonly parser: ParserFactory;
  /** Whether the template has this family's structure. The model's name is never used. */
  readonly matches: (template: string) => boolean;
}

const has =
  (...parts: readonly string[]) =>
  (template: string): boolean =>
    parts.every((part) => template.includes(part));

const common: Pick<Family, 'replyFields' | 'callIds'> = {
  replyFields: ({ text, reasoning }) => ({
    content: text,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  }),
  callIds: null,
};

/** The first match wins. */
const families: readonly Detection[] = [
  {
    ...common,
    name: 'harmony',
    turnClose: ['<|return|>', '<|call|>'],
    parser: createHarmonyParser,
    replyFields: harmonyFields,
    matches: has('<|channel|>', '<|message|>'),
  },
  {
    ...common,
    name: 'kimi',
    turnClose: ['<|im_end|>'],
    parser: createKimiParser,
    callIds: kimiCallIds,
    matches: has('<|tool_calls_section_begin|>'),
  },
  {
    ...common,
    name: 'deepseek',
    turnClose: ['<｜end▁of▁sentence｜>'],
    parser: createDeepSeekParser,
    matches: has('<｜tool▁calls▁begin｜>'),
  },
  {
    ...common,
    name: 'function-xml',
    turnClose: ['<|im_end|>'],
    parser: createFunctionXmlParser,
    matches: has('<tool_call>', '<function=', '<parameter='),
  },
  {
    ...common,
    name: 'glm',
    turnClose: ['<|user|>', '<|observation|>', '<|endoftext|>'],
    parser: createGlmParser,
    matches: has('<tool_call>', '<arg_key>'),
  },
  {
    ...common,
    name: 'hermes',
    turnClose: ['<|im_end|>'],
    parser: createHermesParser,
    matches: (template) => has('<tool_call>', 'arguments')(template) && !template.includes('<function='),
  },
  {
    ...common,
    name: 'llama',
    turnClose: ['<|eot_id|>', '<|eom_id|>'],
    parser: createLlamaParser,
    matches: has('<|start_header_id|>', '"parameters": '),
  },
  {
    ...common,
    name: 'plain',
    turnClose: ['<|im_end|>', '<|eot_id|>'],
    parser: createCommandParser,
    matches: (template) => !/\btool/.test(template),
  },
];

/** Finds a template's family. Null when no parser supports the template's tool-call syntax. */
export function familyOf(template: string): Family | null {
  const found = families.find(({ matches }) => matches(template));
  if (found === undefined) return null;
  const { parser, matches: _, ...family } = found;
  const thinks = template.includes('</think>');
  return { ...family, createParser: (context) => parser({ ...context, thinks }) };
}

/** The names of all supported syntaxes, for error messages. */
export const familyNames: readonly string[] = families.map(({ name }) => name);

/** The fields of a harmony reply. The templates refuse a call with both text and reasoning, and print either as reasoning. */
function harmonyFields({ text, reasoning, toolCalls }: AssistantMessage): Readonly<Record<string, string>> {
  if (reasoning === '') return { content: text };
  if (toolCalls.length === 0 || text === '') return { content: text, thinking: reasoning };
  return { content: '', thinking: `${reasoning}\n\n${text}` };
}
