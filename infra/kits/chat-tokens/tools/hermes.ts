import { broken, isObject, parseJson, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import { memberText } from './member-text.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

/**
 * Parses the syntax of Hermes, Qwen2.5 and Qwen3: `<think>…</think>`, then text, then
 * `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.
 */
export const createHermesParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: '<tool_call>',
    close: '</tool_call>',
    read: (body, closed) => (closed ? readCall(textOf(body)) : broken('unclosed')),
  });

function readCall(body: string): Reading {
  const call = parseJson(body);
  if (!isObject(call)) return broken('invalid-json');
  const { name, arguments: given } = call;
  if (typeof name !== 'string') return broken('missing-name');
  if (given === undefined) return reading(name, { status: 'ok', text: '{}' });
  if (!isObject(given)) return broken(name === '' ? 'missing-name' : 'invalid-arguments');
  return reading(name, { status: 'ok', text: memberText(body, 'arguments') ?? JSON.stringify(given) });
}
