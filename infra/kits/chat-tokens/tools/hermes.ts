import { type Arguments, broken, isObject, parseJson, type Reading, reading, repaired } from './call.ts';
import { createDelimitedParser } from './delimited.ts';
import { type JsonSyntax, readJsonCalls } from './json-calls.ts';
import { memberText } from './member-text.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

/**
 * Parses the syntax of Hermes, Qwen2.5 and Qwen3: `<think>…</think>`, then text, then any number of
 * `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, with blanks between any two parts.
 *
 * Nesting: a delimiter inside a JSON string is part of it. What follows JSON that does not end is text.
 *
 * Repairs: `parameters` for `arguments`; members beside the two are left out. A call with other members and neither of the two
 * has invalid arguments.
 *
 * Reasoning that never ends: see `createDelimitedParser`.
 */
export const createHermesParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: syntax.open,
    close: syntax.close,
    read: (rest, codes) => readJsonCalls(rest, codes, syntax),
  });

const syntax: JsonSyntax = {
  open: '<tool_call>',
  close: '</tool_call>',
  around: [],
  head: () => /\s*/uy,
  tail: /\s*/uy,
  otherwise: 'invalid-json',
  toReading: (_, json) => readCall(json),
};

function readCall(json: string): Reading {
  const call = parseJson(json);
  if (!isObject(call)) return broken('invalid-json');
  const { name } = call;
  if (typeof name !== 'string' || name === '') return broken('missing-name');
  const keys = Object.keys(call).filter((key) => key !== 'name');
  if (keys.length === 0) return reading(name, { status: 'ok', text: '{}' });
  const key = ['arguments', 'parameters'].find((each) => Object.hasOwn(call, each));
  const found = reading(name, memberArguments(json, call, key));
  return keys.length === 1 && key === 'arguments' ? found : repaired(found);
}

function memberArguments(json: string, call: Readonly<Record<string, unknown>>, key: string | undefined): Arguments {
  const given = key === undefined ? undefined : call[key];
  if (key === undefined || !isObject(given)) return { status: 'invalid-arguments', text: '' };
  return { status: 'ok', text: memberText(json, key) ?? JSON.stringify(given) };
}
