import { broken, type OfferedTools, type Reading, reading, repaired } from './call.ts';
import type { Codes } from './codes.ts';
import { createDelimitedParser } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';
import { type RawSyntax, readRawCalls } from './raw-calls.ts';
import { type ParameterSyntax, readRawValues } from './raw-values.ts';
import { knownParameters, typedArguments } from './typed-value.ts';

const open = '<tool_call>';
const close = '</tool_call>';
const openFunction = '<function=';
const closeValue = '</parameter>';

/**
 * Parses the syntax of Qwen3-Coder, Qwen3.5 and Nemotron 3: `<think>…</think>`, then text, then any number of
 * `<tool_call><function=name><parameter=key>value</parameter>…</function></tool_call>`, with blanks between any two delimiters.
 * A line break at each end of a value is not part of it. Values are text of the type that the tool's schema names.
 *
 * Nesting: see `readRawCalls` for calls in values, and `readRawValues` for parameters in them.
 *
 * Repairs: a forgotten `<tool_call>` of an offered tool, where no more than blanks separate it from an earlier call; one or two
 * of the delimiters at the end, if another call or the reply's end follows; an end of a value, see `readRawValues`; quotes
 * around a name. A name with blanks, `=`, `<` or `>` holds a piece of a value, since the model forgot its `>`: such a call is
 * malformed.
 *
 * Reasoning that never ends: see `createDelimitedParser`.
 */
export const createFunctionXmlParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open,
    close,
    bare: openFunction,
    read: (rest, codes, tools) => readRawCalls(rest, syntaxOf(codes, tools), tools),
  });

function syntaxOf(codes: Codes, tools: OfferedTools): RawSyntax {
  const [opening, closing, begun] = [open, close, openFunction].map(codes.of);
  const empty = `(?<empty>${opening}\\s*${begun}(?<emptyName>[^>\\n]{0,200})>\\s*</function>\\s*${closing})`;
  const start = `(?<start>${opening}\\s*${begun}(?<startName>[^>\\n]{0,200})>(?=\\s*<parameter=))`;
  const end = `(?<end>${closeValue}\\s*</function>\\s*${closing})`;
  const bare = `(?<bare>${begun}(?<bareName>[^>\\n]{0,200})>(?=\\s*<parameter=))`;
  const last = `(?=\\s*(?:$|${opening}|${begun}))`;
  const ends = [
    `${closeValue}\\s*${closing}${last}`,
    `(?:${closeValue}\\s*)?</function>\\s*${closing}${last}`,
    `(?:${closeValue}\\s*)?</function>${last}`,
  ];
  const parameters = parametersOf(begun ?? '');
  return {
    open: opening ?? '',
    close: closing ?? '',
    closeValue,
    strict: new RegExp([empty, start, end].join('|'), 'gu'),
    loose: new RegExp([empty, start, bare, end, `(?<looseEnd>${ends.join('|')})`].join('|'), 'gu'),
    outer: new RegExp(`[${opening}${closing}${begun}]|</function>`, 'u'),
    toReading: (written, body) => readFunction(written, body, { codes, tools, syntax: parameters }),
  };
}

const parametersOf = (begun: string): ParameterSyntax => ({
  pattern: new RegExp(`(?<open><parameter=(?:(?<name>[^<>\\n]{1,200})>)?)|(?<close>${closeValue})`, 'gu'),
  nested: new RegExp(`(?<start>${begun}[^>\\n]{0,200}>(?=\\s*<parameter=))|(?<end>${closeValue}\\s*</function>)`, 'gu'),
  nameOf(written, known) {
    const name = unquoted(written.trim());
    return known.has(name) || /^[^<>=\s"']+$/u.test(name) ? name : null;
  },
  isUsual(body, boundary, { first, last }) {
    const isOnLine = body[first.to] === '\n';
    if ((body[boundary.open.to] === '\n') !== isOnLine) return false;
    if (isOnLine && body.slice(boundary.from, boundary.close.from) === '\n') return false;
    if (body.slice(boundary.close.to, boundary.open.from).includes('\n') !== isOnLine) return false;
    return last === null || (body[boundary.close.from - 1] === '\n') === (body[last.from - 1] === '\n');
  },
  isInline(body, { close: ending, open: opening }, { first }) {
    const isOnLine = body[first.to] === '\n';
    return isOnLine && body[ending.from - 1] !== '\n' && !body.slice(ending.to, opening.to + 1).includes('\n');
  },
  mayForgetClose: true,
  valueOf: (raw) => raw.replace(/^\n/, '').replace(/\n$/, ''),
});

function readFunction(written: string, body: string, { codes, tools, syntax }: Context): Reading {
  const name = unquoted(written);
  const parameters = tools.get(name)?.parameters ?? null;
  if (body.trim() === '') return rewritten(name, written, reading(name, typedArguments(new Map(), parameters)));
  const found = readRawValues(body, syntax, knownParameters(parameters));
  if (found === null) return broken('malformed');
  const values = new Map([...found.values].map(([key, value]) => [key, codes.decode(value)]));
  const call = reading(name, typedArguments(values, parameters));
  return found.isRepaired ? repaired(call) : rewritten(name, written, call);
}

interface Context {
  readonly codes: Codes;
  readonly tools: OfferedTools;
  readonly syntax: ParameterSyntax;
}

const rewritten = (name: string, written: string, call: Reading): Reading => (name === written ? call : repaired(call));

/** Removes a pair of quotes around a name. */
const unquoted = (name: string): string => /^(["'])(.+)\1$/u.exec(name)?.[2] ?? name;
