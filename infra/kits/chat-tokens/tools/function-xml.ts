import { broken, type OfferedTools, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';
import { typedArguments } from './typed-value.ts';

const openCall = '<tool_call>';
const closeCall = '</tool_call>';
const openFunction = '<function=';
const closeFunction = '</function>';

/**
 * Parses the syntax of Qwen3-Coder, Qwen3.5 and Nemotron 3:
 * `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`.
 * Models forget `<tool_call>` (then a stray `</tool_call>` follows), `</parameter>` or one of the two at the end.
 */
export const createFunctionXmlParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: openCall,
    close: closeCall,
    around: [closeCall],
    bare: { open: openFunction, close: closeFunction, begun: /^<function=([^>\n]*)>\s*<parameter=/ },
    read: (body, closed, tools) => readFunction(textOf(body), closed, tools),
  });

function readFunction(body: string, closed: boolean, tools: OfferedTools): Reading {
  const head = /^\s*<function=([^>\n]*)>/.exec(body);
  if (head === null) return broken(closed ? 'malformed' : 'unclosed');
  const inside = body.slice(head[0].length).trimEnd();
  const ended = inside.endsWith(closeFunction);
  if (!closed && !ended) return broken('unclosed');
  const name = head[1]?.trim() ?? '';
  const parameters = tools.get(name)?.parameters ?? null;
  const values = readParameters(ended ? inside.slice(0, -closeFunction.length) : inside, namesIn(parameters));
  if (values === null) return broken('malformed');
  return reading(name, typedArguments(values, parameters));
}

/** A name of a parameter. One with other characters holds a piece of a value, since the model forgot its `>`. */
const parameterName = /^[^<>=\s]+$/;

/** Reads the parameters by name. Null where one has no name, or other text is between them. */
function readParameters(text: string, known: ReadonlySet<string>): ReadonlyMap<string, string> | null {
  const values = new Map<string, string>();
  const opening = /\s*<parameter=([^>\n]+)>/y;
  for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
    const name = found[1]?.trim() ?? '';
    if (!known.has(name) && !parameterName.test(name)) return null;
    const { value, next } = readValue(text, opening.lastIndex, known);
    values.set(name, value);
    opening.lastIndex = next;
    if (text.slice(next).trim() === '') return values;
  }
  return values.size === 0 && text.trim() === '' ? values : null;
}

/**
 * Reads one parameter's value. Code may contain `</parameter>` too: only one that is followed by another parameter, or by
 * nothing, ends the value. Where the model forgot it, a known parameter that opens on a line of its own ends the value.
 */
function readValue(text: string, start: number, known: ReadonlySet<string>): { value: string; next: number } {
  const closing = /<\/parameter>(?=\s*(?:<parameter=|$))/g;
  closing.lastIndex = start;
  const close = closing.exec(text);
  const end = close?.index ?? text.length;
  for (const { index, 1: name = '' } of text.slice(start, end).matchAll(/\n<parameter=([^>\n]+)>/g)) {
    if (known.has(name.trim())) return { value: unwrap(text.slice(start, start + index)), next: start + index };
  }
  return { value: unwrap(text.slice(start, end)), next: close === null ? end : closing.lastIndex };
}

/** Removes the line break that the syntax puts on either side of a value. */
const unwrap = (value: string): string => value.replace(/^\n/, '').replace(/\n$/, '');

function namesIn(parameters: Readonly<Record<string, unknown>> | null): ReadonlySet<string> {
  const properties = parameters?.properties;
  return new Set(typeof properties === 'object' && properties !== null ? Object.keys(properties) : []);
}
