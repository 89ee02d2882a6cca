import { broken, jsonArguments, reading } from './call.ts';
import { noCode } from './codes.ts';
import { createDelimitedParser } from './delimited.ts';
import { type JsonSyntax, readJsonCalls } from './json-calls.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

const openSection = '<｜tool▁calls▁begin｜>';
const separator = '<｜tool▁sep｜>';

/**
 * Parses the syntax of DeepSeek V3, R1 and V3.1: `<think>…</think>`, then text, then a section of calls between
 * `<｜tool▁calls▁begin｜>` and `<｜tool▁calls▁end｜>`, each of them between `<｜tool▁call▁begin｜>` and `<｜tool▁call▁end｜>`.
 * A V3.1 call is `name<｜tool▁sep｜>{…}`; a V3 call is `function<｜tool▁sep｜>name` and the arguments in a fenced block. The
 * text after the separator shows which one it is.
 *
 * Nesting: a delimiter inside a JSON string is part of it. What follows JSON that does not end is text.
 *
 * Repairs: none. Calls need no section, and the arguments may be left out.
 *
 * Reasoning that never ends: a section ends it. For calls without a section see `createDelimitedParser`.
 */
export const createDeepSeekParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: syntax.open,
    close: syntax.close,
    inner: [separator],
    around: syntax.around,
    endsReasoning: [openSection],
    read: (rest, codes) => readJsonCalls(rest, codes, syntax),
  });

const syntax: JsonSyntax = {
  open: '<｜tool▁call▁begin｜>',
  close: '<｜tool▁call▁end｜>',
  around: [openSection, '<｜tool▁calls▁end｜>'],
  head: (codes) => new RegExp(`(${noCode}*)${codes.of(separator)}([^{[\\uDC00-\\uDFFF]*)`, 'uy'),
  tail: /\s*(?:```\s*)?/uy,
  otherwise: 'malformed',
  toReading([, before = '', between = ''], json) {
    const args = jsonArguments(json);
    if (between.trim() === '') return reading(before.trim(), args);
    // The text is trimmed first: with two adjacent runs of blanks the pattern would backtrack quadratically on long ones.
    const fenced = /^(?:([^\n`]*)\n\s*)?```[a-z]*\s*(?:```)?$/.exec(between.trim());
    return fenced === null ? broken('invalid-json') : reading(fenced[1]?.trim() ?? '', args);
  },
};
