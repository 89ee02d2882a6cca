import { broken, isWellFormed, type OfferedTools, type Reading, repaired } from './call.ts';
import type { Span } from './delimited.ts';

/** The syntax of calls whose values are plain text, over coded text. */
export interface RawSyntax {
  /** The outer delimiters of a call. */
  readonly open: string;
  readonly close: string;
  /** The delimiter that ends a value. */
  readonly closeValue: string;
  /**
   * Matches a whole call without parameters (`empty`), the start of another one if its first parameter follows (`start`), and
   * its end, from the delimiter that ends the last value on (`end`). Further groups hold the names.
   */
  readonly strict: RegExp;
  /** Matches what stands for a start (`bare`) or an end (`looseEnd`) too, where the model forgot a delimiter; null if it may forget none. */
  readonly loose: RegExp | null;
  /** Matches a delimiter that stands outside of values in each call. */
  readonly outer: RegExp;
  /** Reads a call by its name and what follows its start, with the delimiter that ends the last value. */
  readonly toReading: (name: string, body: string) => Reading;
}

/** A start or an end of a call, or a whole call without parameters. */
interface Token {
  readonly kind: 'empty' | 'start' | 'bare' | 'end' | 'looseEnd';
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

interface Call {
  readonly start: Token;
  readonly end: Token;
}

/** The starts and ends of a text, paired like parentheses. Calls within another one are left out. */
interface Pairing {
  readonly calls: readonly Call[];
  /** The start of a call that never ends. */
  readonly unclosed: Token | null;
  /** The ends that belong to no call. */
  readonly strays: readonly Token[];
  /** Whether an end and a start follow each other in a value, as between two calls. */
  readonly hasInnerBoundary: boolean;
}

/**
 * Reads the calls in the rest of a reply.
 *
 * A value is plain text and may hold any delimiter, so starts and ends are paired like parentheses: a pair within another one
 * is an example in a value. Ends without a start belong to the value of the only call there is, if nothing follows the last one.
 * Beside several calls nothing says to which of them they belong, so that none is given. Nor is a call that does not end,
 * whatever is in it. An end and a start within a call, with nothing but blanks between them, may separate two calls, each with
 * a lone start or end in a value, so that such a call is not given either. A value that holds an end, blanks and a start, in
 * this order, reads like two calls. Where one of several can't be read, it may be a part of another one's value, so
 * that none is given. Only the last one may be cut off, and only an opening without a call may precede the first.
 *
 * Forgotten delimiters are repaired where no value holds one and all calls have the same line breaks.
 */
export function readRawCalls(rest: string, syntax: RawSyntax, tools: OfferedTools): readonly Span[] {
  const spans = readSpans(rest, syntax, tools);
  const found = spans.filter(({ reading }) => reading !== null);
  const first = found.findIndex(({ reading }) => reading !== null && isWellFormed(reading));
  const isDoubtful = found.some(({ coded, reading }, at) => {
    if (reading === null || isWellFormed(reading)) return false;
    // A lone opening before the first call is no part of a value.
    if (at < first && coded.slice(syntax.open.length).search(syntax.outer) < 0) return false;
    return at < found.length - 1 || coded.includes(syntax.close);
  });
  return found.length > 1 && isDoubtful ? ambiguous(rest) : spans;
}

const ambiguous = (coded: string): readonly Span[] => [{ coded, reading: broken('ambiguous') }];

function readSpans(rest: string, syntax: RawSyntax, tools: OfferedTools): readonly Span[] {
  const strict = pair(rest, syntax.strict, tools, false);
  if (isClean(strict)) return spansOf(rest, strict.calls, syntax, (gap, after) => readGap(gap, syntax, tools, after));
  const loose = syntax.loose === null ? strict : pair(rest, syntax.loose, tools, false);
  if (isClean(loose) && arePlain(rest, loose, syntax)) return spansOf(rest, loose.calls, syntax, leftOver);
  const only = onlyCall(rest, strict, syntax);
  return only === null ? unclear(rest, strict, syntax) : spansOf(rest, [only], syntax, leftOver);
}

const isClean = ({ unclosed, strays, hasInnerBoundary }: Pairing): boolean =>
  unclosed === null && strays.length === 0 && !hasInnerBoundary;

/** Reads text between calls, in which others may have forgotten delimiters. `after`: whether it follows a call. */
function readGap(gap: string, syntax: RawSyntax, tools: OfferedTools, after: boolean): readonly Span[] {
  if (syntax.loose === null) return leftOver(gap, after, syntax);
  const found = pair(gap, syntax.loose, tools, after);
  const isSure = isClean(found) && arePlain(gap, found, syntax);
  return isSure ? spansOf(gap, found.calls, syntax, leftOver) : unclear(gap, found, syntax);
}

/**
 * Whether no value holds a delimiter and all calls have the same line breaks. Otherwise nothing says, where some delimiters were
 * forgotten, which ones are part of a value.
 */
function arePlain(text: string, { calls }: Pairing, { outer }: RawSyntax): boolean {
  const isOnLine = calls.map(({ start }) => text[start.to] === '\n');
  if (new Set(isOnLine).size > 1) return false;
  return calls.every(({ start, end }) => text.slice(start.to, end.from).search(outer) < 0);
}

function pair(text: string, pattern: RegExp, tools: OfferedTools, after: boolean): Pairing {
  const calls: Call[] = [];
  const strays: Token[] = [];
  let start: Token | null = null;
  let depth = 0;
  let hasInnerBoundary = false;
  let lastEnd = -1;
  /** Whether a call may begin here without its opening delimiter: only blanks may separate it from an earlier call. */
  const mayBegin = ({ name, from }: Token): boolean => {
    const last = calls.at(-1)?.end.to ?? 0;
    return tools.has(name) && ((calls.length === 0 && !after) || text.slice(last, from).trim() === '');
  };
  for (const token of tokensIn(text, pattern)) {
    if (token.kind === 'empty') {
      if (depth === 0) calls.push({ start: token, end: token });
    } else if (token.kind === 'start' || token.kind === 'bare') {
      if (depth === 0 && token.kind === 'bare' && !mayBegin(token)) continue;
      if (depth === 0) start = token;
      else if (lastEnd >= 0) hasInnerBoundary ||= text.slice(lastEnd, token.from).trim() === '';
      depth += 1;
    } else if (start === null || depth === 0) strays.push(token);
    else {
      depth -= 1;
      if (depth === 0) calls.push({ start, end: token });
    }
    lastEnd = token.kind === 'end' || token.kind === 'looseEnd' ? token.to : -1;
  }
  return { calls, unclosed: depth === 0 ? null : start, strays, hasInnerBoundary };
}

function* tokensIn(text: string, pattern: RegExp): Iterable<Token> {
  for (const { index: from, 0: whole, groups = {} } of text.matchAll(pattern)) {
    const name = groups.emptyName ?? groups.startName ?? groups.bareName ?? '';
    for (const kind of ['empty', 'start', 'bare', 'end', 'looseEnd'] as const) {
      if (groups[kind] !== undefined) yield { kind, name: name.trim(), from, to: from + whole.length };
    }
  }
}

/** Returns the only call of a text, up to the last end, if nothing follows that and no other call begins right after an end. */
function onlyCall(
  text: string,
  { calls, unclosed, strays, hasInnerBoundary }: Pairing,
  { open }: RawSyntax,
): Call | null {
  const [only, ...others] = calls;
  const last = strays.at(-1);
  if (only === undefined || others.length > 0 || last === undefined) return null;
  if (unclosed !== null || hasInnerBoundary) return null;
  if (only.start.kind === 'empty' || last.from < only.end.to) return null;
  const beginsAnother = [only.end, ...strays].some(({ to }) => text.slice(to).trimStart().startsWith(open));
  return beginsAnother || text.slice(last.to).trim() !== '' ? null : { ...only, end: last };
}

/** Returns the spans of a text whose starts and ends do not match. */
function unclear(
  text: string,
  { calls, unclosed, strays, hasInnerBoundary }: Pairing,
  syntax: RawSyntax,
): readonly Span[] {
  const isUnsure = strays.length > 0 || unclosed === null;
  if (hasInnerBoundary || (isUnsure && calls.length > 0)) return ambiguous(text);
  if (strays.length > 0 || unclosed === null) return leftOver(text, false, syntax);
  const begun = text.slice(unclosed.from);
  const status = begun.includes(syntax.close) ? 'malformed' : 'unclosed';
  return [...spansOf(text.slice(0, unclosed.from), calls, syntax, leftOver), { coded: begun, reading: broken(status) }];
}

type GapReader = (gap: string, after: boolean, syntax: RawSyntax) => readonly Span[];

function spansOf(text: string, calls: readonly Call[], syntax: RawSyntax, readText: GapReader): readonly Span[] {
  const { close, closeValue, toReading } = syntax;
  const repeated = new RegExp(`(?:\\s*${close})*`, 'uy');
  const spans: Span[] = [];
  let at = 0;
  for (const { start, end } of calls) {
    spans.push(...readText(text.slice(at, start.from), at > 0, syntax));
    const to = start === end ? start.to : end.from + (text.startsWith(closeValue, end.from) ? closeValue.length : 0);
    const found = toReading(start.name, text.slice(start.to, to));
    const isLoose = start.kind === 'bare' || end.kind === 'looseEnd';
    spans.push({ coded: text.slice(start.from, end.to), reading: isLoose ? repaired(found) : found });
    repeated.lastIndex = end.to;
    at = end.to + (repeated.exec(text)?.[0].length ?? 0);
  }
  return [...spans, ...readText(text.slice(at), at > 0, syntax)];
}

/** Returns text without calls. An outer delimiter in it, up to the one that closes, is a call that is not given. */
function leftOver(text: string, _after: boolean, { open, close }: RawSyntax): readonly Span[] {
  const spans: Span[] = [];
  let at = 0;
  const until = (to: number, reading: Reading | null): void => {
    if (to > at) spans.push({ coded: text.slice(at, to), reading });
    at = to;
  };
  const delimiters = [...text.matchAll(new RegExp(`[${open}${close}]`, 'gu'))];
  for (const [number, { index, 0: code }] of delimiters.entries()) {
    if (index < at) continue;
    until(index, null);
    const next = delimiters[number + 1];
    if (code === close) until(index + 1, broken('malformed'));
    else if (next?.[0] === close) until(next.index + 1, broken('malformed'));
    else until(next?.index ?? text.length, broken('unclosed'));
  }
  until(text.length, null);
  return spans;
}
