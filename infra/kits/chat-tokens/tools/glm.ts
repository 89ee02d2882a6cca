import { broken, type OfferedTools, type Reading, reading } from './call.ts';
import { type Codes, noCode } from './codes.ts';
import { createDelimitedParser } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';
import { type RawSyntax, readRawCalls } from './raw-calls.ts';
import { type ParameterSyntax, readRawValues } from './raw-values.ts';
import { knownParameters, typedArguments } from './typed-value.ts';

const open = '<tool_call>';
const close = '</tool_call>';
const openKey = '<arg_key>';
const closeKey = '</arg_key>';
const openValue = '<arg_value>';
const closeValue = '</arg_value>';

/**
 * Parses the syntax of GLM-4.5 and 4.7: `<think>…</think>`, then text, then any number of
 * `<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value>…</tool_call>`, with blanks between any two delimiters or
 * without. Values are text of the type that the tool's schema names.
 *
 * Nesting: see `readRawCalls` for calls in values, and `readRawValues` for parameters in them.
 *
 * Repairs: none.
 *
 * Reasoning that never ends: see `createDelimitedParser`.
 */
export const createGlmParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open,
    close,
    inner: [openKey, closeKey, openValue, closeValue],
    read: (rest, codes, tools) => readRawCalls(rest, syntaxOf(codes, tools), tools),
  });

function syntaxOf(codes: Codes, tools: OfferedTools): RawSyntax {
  const [opening, closing, key] = [codes.of(open), codes.of(close), codes.of(openKey)];
  const endOfValue = codes.of(closeValue);
  const empty = `(?<empty>${opening}(?<emptyName>${noCode}*)${closing})`;
  const begun = `${key}${noCode}*${codes.of(closeKey)}\\s*${codes.of(openValue)}`;
  const start = `(?<start>${opening}(?<startName>\\s*[^\\s\\uDC00-\\uDFFF]+\\s*)(?=${begun}))`;
  const end = `(?<end>${endOfValue}\\s*${closing})`;
  const parameters: ParameterSyntax = {
    pattern: new RegExp(
      `(?<open>${key}(?:(?<name>${noCode}*)${codes.of(closeKey)}\\s*${codes.of(openValue)})?)|(?<close>${endOfValue})`,
      'gu',
    ),
    nested: new RegExp(`(?<start>${opening}${noCode}*(?=${key}))|(?<end>${endOfValue}\\s*${closing})`, 'gu'),
    nameOf: (written) => (written.trim() === '' ? null : written.trim()),
    isUsual: () => true,
    isInline: () => false,
    mayForgetClose: false,
    valueOf: (raw) => raw,
  };
  return {
    open: opening,
    close: closing,
    closeValue: endOfValue,
    strict: new RegExp([empty, start, end].join('|'), 'gu'),
    loose: null,
    outer: new RegExp(`[${opening}${closing}]`, 'u'),
    toReading: (name, body) => readCall(name, body, { codes, tools, syntax: parameters }),
  };
}

interface Context {
  readonly codes: Codes;
  readonly tools: OfferedTools;
  readonly syntax: ParameterSyntax;
}

function readCall(name: string, body: string, { codes, tools, syntax }: Context): Reading {
  if (/\s/.test(name)) return broken('malformed');
  const parameters = tools.get(name)?.parameters ?? null;
  if (body === '') return reading(name, typedArguments(new Map(), parameters));
  const found = readRawValues(body, syntax, knownParameters(parameters));
  if (found === null) return broken('malformed');
  const values = new Map([...found.values].map(([key, value]) => [key, codes.decode(value)]));
  return reading(name, typedArguments(values, parameters));
}
