import { jsonArguments, reading } from './call.ts';
import { noCode } from './codes.ts';
import { createDelimitedParser } from './delimited.ts';
import { type JsonSyntax, readJsonCalls } from './json-calls.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

const openSection = '<|tool_calls_section_begin|>';
const openArguments = '<|tool_call_argument_begin|>';

/**
 * Parses the syntax of Kimi K2: `<think>…</think>`, then text, then a section of calls between
 * `<|tool_calls_section_begin|>` and `<|tool_calls_section_end|>`, each of them
 * `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.
 *
 * Nesting: a delimiter inside a JSON string is part of it. What follows JSON that does not end is text.
 *
 * Repairs: none. Calls need no section, and the arguments may be left out.
 *
 * Reasoning that never ends: a section ends it. For calls without a section see `createDelimitedParser`.
 */
export const createKimiParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: syntax.open,
    close: syntax.close,
    inner: [openArguments],
    around: syntax.around,
    endsReasoning: [openSection],
    read: (rest, codes) => readJsonCalls(rest, codes, syntax),
  });

/** The ids of Kimi's calls: the model numbers them over the whole conversation, and matches results by them. */
export const kimiCallIds = {
  isValid: (id: string): boolean => /^functions\.[^:]+:\d+$/.test(id),
  make: (name: string, index: number): string => `functions.${name}:${index}`,
} as const;

const syntax: JsonSyntax = {
  open: '<|tool_call_begin|>',
  close: '<|tool_call_end|>',
  around: [openSection, '<|tool_calls_section_end|>'],
  head: (codes) => new RegExp(`(${noCode}*)${codes.of(openArguments)}\\s*`, 'uy'),
  tail: /\s*/uy,
  otherwise: 'malformed',
  toReading(head, json) {
    const id = head[1]?.trim() ?? '';
    const name = /^(?:functions\.)?(.*?)(?::\d+)?$/.exec(id)?.[1] ?? '';
    return reading(name, jsonArguments(json), id);
  },
};
