import type { Piece } from '../pieces.ts';
import { broken, jsonArguments, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

const separator = '<｜tool▁sep｜>';

/**
 * Parses the syntax of DeepSeek V3, R1 and V3.1. A V3.1 call is `name<｜tool▁sep｜>{…}`; a V3 call is `function<｜tool▁sep｜>name`
 * and the arguments in a fenced block. The text after the separator shows which one it is.
 */
export const createDeepSeekParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: '<｜tool▁call▁begin｜>',
    close: '<｜tool▁call▁end｜>',
    inner: [separator],
    around: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
    endsReasoning: ['<｜tool▁calls▁begin｜>'],
    read: (body, closed) => (closed ? readCall(body) : broken('unclosed')),
  });

function readCall(body: readonly Piece[]): Reading {
  const at = body.findIndex((piece) => 'marker' in piece && piece.marker === separator);
  if (at < 0) return broken('malformed');
  const [before, after] = [textOf(body.slice(0, at)), textOf(body.slice(at + 1))];
  // The text is trimmed first: with two adjacent runs of blanks the pattern would backtrack quadratically on long ones.
  const fenced = /^(?:(?!```)([^\n]*)\n\s*)?```[a-z]*[ \t]*\n([\s\S]*)```\s*$/.exec(after.trimStart());
  if (fenced === null) return reading(before.trim(), jsonArguments(after));
  const [, name = '', args = ''] = fenced;
  return reading(name.trim(), jsonArguments(args));
}
