import { broken, type Reading } from './call.ts';
import { anyCode, type Codes, isCodeAt } from './codes.ts';
import type { Span } from './delimited.ts';

/** The syntax of a call whose arguments are JSON. */
export interface JsonSyntax {
  readonly open: string;
  readonly close: string;
  readonly around: readonly string[];
  /** Creates a sticky pattern for the coded text between the opening delimiter and the JSON, blanks included. */
  readonly head: (codes: Codes) => RegExp;
  /** The sticky pattern for the coded text between the JSON and the closing delimiter. */
  readonly tail: RegExp;
  /** The status of a call without such a head, or with other text than JSON after it. */
  readonly otherwise: Reading['status'];
  /** Reads a call by the match of its head and by its JSON, which is empty if the call has none. */
  readonly toReading: (head: RegExpExecArray, json: string) => Reading;
}

/**
 * Reads the calls in the rest of a reply.
 *
 * A call's JSON tells where it ends: a delimiter inside one of its strings is text, and one outside of them ends it. JSON with
 * a string that ends nowhere has no such place, so all that follows it is text. A closing delimiter that belongs to no call shows that an
 * earlier value was read too short: then no call is given.
 */
export function readJsonCalls(rest: string, codes: Codes, syntax: JsonSyntax): readonly Span[] {
  const delimiter = new RegExp(anyCode, 'gu');
  const [open, close] = [codes.of(syntax.open), codes.of(syntax.close)];
  const around = new Set(syntax.around.map(codes.of));
  const spans: Span[] = [];
  let hasCall = false;
  let isAmbiguous = false;
  let at = 0;
  const addText = (to: number): void => {
    if (to > at) spans.push({ coded: rest.slice(at, to), reading: null });
    at = to;
  };
  for (let found = delimiter.exec(rest); found !== null; found = delimiter.exec(rest)) {
    const [code] = found;
    if (code === open) {
      addText(found.index);
      const { end, reading } = readOne(rest, at, codes, syntax);
      spans.push({ coded: rest.slice(at, end), reading });
      hasCall = true;
      at = end;
    } else if (code === close) {
      const isRepeated = spans.at(-1)?.reading != null && rest.slice(at, found.index).trim() === '';
      addText(found.index);
      if (!isRepeated) {
        isAmbiguous ||= hasCall;
        spans.push({ coded: code, reading: broken('malformed') });
      }
      at = found.index + 1;
    } else if (around.has(code)) {
      addText(found.index);
      at = found.index + 1;
    } else addText(found.index + 1);
    delimiter.lastIndex = at;
  }
  addText(rest.length);
  return isAmbiguous ? [{ coded: rest, reading: broken('ambiguous') }] : spans;
}

/** Reads the call that opens at `start`. One that is not JSON ends at the next delimiter around calls. */
function readOne(
  rest: string,
  start: number,
  codes: Codes,
  { open, close, around, head, tail, otherwise, toReading }: JsonSyntax,
): { readonly end: number; readonly reading: Reading } {
  const closing = codes.of(close);
  const delimiter = new RegExp(`[${[open, close, ...around].map(codes.of).join('')}]`, 'gu');
  const endingAfter = (from: number, status: Reading['status']) => {
    const next = matchAt(delimiter, rest, from);
    if (next?.[0] === closing) return { end: next.index + 1, reading: broken(status) };
    return { end: next?.index ?? rest.length, reading: broken('unclosed') };
  };
  const begun = matchAt(head(codes), rest, start + 1);
  if (begun === null) return endingAfter(start + 1, otherwise);
  const jsonAt = start + 1 + begun[0].length;
  if (rest[jsonAt] === closing) return { end: jsonAt + 1, reading: toReading(begun, '') };
  if (rest[jsonAt] !== '{' && rest[jsonAt] !== '[') return endingAfter(jsonAt, otherwise);
  const jsonEnd = endOfJson(rest, jsonAt);
  if (jsonEnd === null) {
    const isClosed = new RegExp(closing, 'u').test(rest.slice(jsonAt));
    return { end: rest.length, reading: broken(isClosed ? 'invalid-json' : 'unclosed') };
  }
  if (jsonEnd.isInterrupted) return endingAfter(jsonEnd.at, 'invalid-json');
  const after = jsonEnd.at + (matchAt(tail, rest, jsonEnd.at)?.[0].length ?? 0);
  if (rest[after] !== closing) return endingAfter(after, 'invalid-json');
  return { end: after + 1, reading: toReading(begun, codes.decode(rest.slice(jsonAt, jsonEnd.at))) };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

interface JsonEnd {
  readonly at: number;
  /** Whether a delimiter stands there, so that the JSON is not whole. */
  readonly isInterrupted: boolean;
}

/** Finds the end of a JSON object or list in coded text. Null when there is none. */
function endOfJson(coded: string, start: number): JsonEnd | null {
  let depth = 0;
  let inString = false;
  for (let at = start; at < coded.length; at += 1) {
    const character = coded[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (isCodeAt(coded, at)) return { at, isInterrupted: true };
    else if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return { at: at + 1, isInterrupted: false };
    }
  }
  return null;
}
