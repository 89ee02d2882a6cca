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

/** What the templates of one family have in common beyond what a template can say itself. */
export interface Family {
  readonly name: string;
  /** Tokens with which the model ends its turn, where the vocabulary has them; besides the configured ones. */
  readonly turnClose: readonly string[];
  readonly createParser: (context: ReplyContext) => ReplyParser;
  /** Text and reasoning of a reply under the names that the template reads. */
  readonly spoken: (reply: AssistantMessage) => Readonly<Record<string, string>>;
  /** The ids that the model knows its calls by; null where any will do. */
  readonly callIds: CallIds | null;
}

export interface CallIds {
  readonly isOne: (id: string) => boolean;
  /** `index` counts over the whole conversation. */
  readonly make: (name: string, index: number) => string;
}

interface Detection extends Omit<Family, 'createParser'> {
  readonly parser: ParserFactory;
  /** Seen in the structure of the template, never in the name of the model. */
  readonly matches: (template: string) => boolean;
}

const has =
  (...parts: readonly string[]) =>
  (template: string): boolean =>
    parts.every((part) => template.includes(part));

const common: Pick<Family, 'spoken' | 'callIds'> = {
  spoken: ({ text, reasoning }) => ({ content: text, ...(reasoning === '' ? {} : { reasoning_content: reasoning }) }),
  callIds: null,
};

/** First match wins. */
const families: readonly Detection[] = [
  {
    ...common,
    name: 'harmony',
    turnClose: ['<|return|>', '<|call|>'],
    parser: createHarmonyParser,
    spoken: harmonySpoken,
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

/** Null when the template has a tool-call syntax that no parser knows. */
export function familyOf(template: string): Family | null {
  const found = families.find(({ matches }) => matches(template));
  if (found === undefined) return null;
  const { parser, matches: _, ...family } = found;
  const thinks = template.includes('</think>');
  return { ...family, createParser: (context) => parser({ ...context, thinks }) };
}

/** The syntaxes that are parsed, for messages. */
export const familyNames: readonly string[] = families.map(({ name }) => name);

/** The template refuses text and reasoning beside a call, and prints either as the reasoning. */
function harmonySpoken({ text, reasoning, toolCalls }: AssistantMessage): Readonly<Record<string, string>> {
  if (reasoning === '') return { content: text };
  if (toolCalls.length === 0 || text === '') return { content: text, thinking: reasoning };
  return { content: '', thinking: `${reasoning}\n\n${text}` };
}
