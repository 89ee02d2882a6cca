import type { Piece } from '../pieces.ts';
import { broken, jsonArguments, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

const separator = '<｜tool▁sep｜>';

/**
 * DeepSeek V3, R1 and V3.1. A call of V3.1 is `name<｜tool▁sep｜>{…}`, one of V3 `function<｜tool▁sep｜>name` and the arguments
 * in a fenced block; what follows the separator tells which.
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
  const [before, behind] = [textOf(body.slice(0, at)), textOf(body.slice(at + 1))];
  // Trimmed first: two runs of blanks in one pattern try every split of a long one.
  const fenced = /^(?:(?!```)([^\n]*)\n\s*)?```[a-z]*[ \t]*\n([\s\S]*)```\s*$/.exec(behind.trimStart());
  if (fenced === null) return reading(before.trim(), jsonArguments(behind));
  const [, name = '', args = ''] = fenced;
  return reading(name.trim(), jsonArguments(args));
}
