import type { Piece } from '../pieces.ts';
import { broken, type OfferedTools, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';
import { typedArguments } from './typed-value.ts';

const openKey = '<arg_key>';
const closeKey = '</arg_key>';
const openValue = '<arg_value>';
const closeValue = '</arg_value>';

/**
 * Parses the syntax of GLM-4.5 and 4.7, with or without line breaks:
 * `<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value>…</tool_call>`.
 */
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

/** Reads the pairs that follow an opening key delimiter. A value is all the text before its closing delimiter. */
function readPairs(body: readonly Piece[], start: number): ReadonlyMap<string, string> | null {
  const values = new Map<string, string>();
  for (let at = start; at <= body.length; ) {
    const key = upTo(body, at, closeKey);
    const gap = upTo(body, key.next, openValue);
    const value = upTo(body, gap.next, closeValue);
    if (value.next > body.length || gap.text.trim() !== '') return null;
    values.set(key.text.trim(), value.text);
    const after = upTo(body, value.next, openKey);
    if (after.text.trim() !== '') return null;
    at = after.next;
  }
  return values;
}

/** The text up to a marker; `next` is the index after the marker, or beyond the body's length + 1 when there is none. */
function upTo(body: readonly Piece[], start: number, marker: string): { text: string; next: number } {
  const found = body.findIndex((piece, at) => at >= start && 'marker' in piece && piece.marker === marker);
  const end = found < 0 ? body.length : found;
  return { text: textOf(body.slice(start, end)), next: end + 1 };
}
