import type { Piece } from '../pieces.ts';
import { broken, type OfferedTools, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';
import { typedArguments } from './typed-value.ts';

const openKey = '<arg_key>';
const closeKey = '</arg_key>';
const openValue = '<arg_value>';
const closeValue = '</arg_value>';

/** GLM-4.5 and 4.7: `<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value>…</tool_call>`, with or without line breaks. */
export const createGlmParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: '<tool_call>',
    close: '</tool_call>',
    inner: [openKey, closeKey, openValue, closeValue],
    read: (body, closed, tools) => (closed ? readCall(body, tools) : broken('unclosed')),
  });

function readCall(body: readonly Piece[], tools: OfferedTools): Reading {
  const { text, next } = upTo(body, 0, openKey);
  const name = text.trim();
  if (/\s/.test(name)) return broken('malformed');
  const values = readPairs(body, next);
  if (values === null) return broken('malformed');
  return reading(name, typedArguments(values, tools.get(name)?.parameters ?? null));
}

/** From behind an opened key. A value is whatever stands before its closing delimiter. */
function readPairs(body: readonly Piece[], start: number): ReadonlyMap<string, string> | null {
  const values = new Map<string, string>();
  for (let at = start; at <= body.length; ) {
    const key = upTo(body, at, closeKey);
    const gap = upTo(body, key.next, openValue);
    const value = upTo(body, gap.next, closeValue);
    if (value.next > body.length || gap.text.trim() !== '') return null;
    values.set(key.text.trim(), value.text);
    const behind = upTo(body, value.next, openKey);
    if (behind.text.trim() !== '') return null;
    at = behind.next;
  }
  return values;
}

/** `next` is behind the marker; behind the end of the body, and more, when there is none. */
function upTo(body: readonly Piece[], start: number, marker: string): { text: string; next: number } {
  const found = body.findIndex((piece, at) => at >= start && 'marker' in piece && piece.marker === marker);
  const end = found < 0 ? body.length : found;
  return { text: textOf(body.slice(start, end)), next: end + 1 };
}
