import { anyCode } from './codes.ts';
import type { KnownParameters } from './typed-value.ts';

/** The syntax of parameters whose values are plain text, over coded text. */
export interface ParameterSyntax {
  /**
   * Matches the delimiter that ends a value (`close`) and the opening of a parameter (`open`) with its `name`, which is
   * missing where the opening is broken.
   */
  readonly pattern: RegExp;
  /** Matches the start (`start`) and the end (`end`) of a call in a value, without its outer delimiters. */
  readonly nested: RegExp;
  /** Returns the name that is meant; null if the text is not a valid name. */
  readonly nameOf: (written: string, known: ReadonlySet<string>) => string | null;
  /** Whether a boundary between two values has the whitespace that the delimiters at both ends of the call have. */
  readonly isUsual: (body: string, boundary: Boundary, ends: Ends) => boolean;
  /** Whether a boundary stands within a line, in a call whose delimiters stand on lines of their own. */
  readonly isInline: (body: string, boundary: Boundary, ends: Ends) => boolean;
  /** Whether the model may forget the delimiter that ends a value. */
  readonly mayForgetClose: boolean;
  readonly valueOf: (raw: string) => string;
}

/** The opening of a parameter, whose name is null if it is broken, or the end of a value. */
export interface Mark {
  readonly kind: 'open' | 'close';
  readonly written: string | null;
  readonly name: string | null;
  readonly from: number;
  readonly to: number;
}

/** The end of a value and the opening that follows it. */
export interface Boundary {
  /** The index at which the value begins. */
  readonly from: number;
  readonly close: Mark;
  readonly open: Mark;
}

/** The first opening and the last end of a call's parameters. */
export interface Ends {
  readonly first: Mark;
  readonly last: Mark | null;
}

export interface RawValues {
  readonly values: ReadonlyMap<string, string>;
  readonly isRepaired: boolean;
}

/**
 * Reads the parameters of a call by name. Null where it is not certain where each one ends.
 *
 * An end and an opening with nothing but blanks between them separate two values. Within a value they are pairs like
 * parentheses, or parts of a call that is an example; the only opening of a required parameter is no part of a value. Those that
 * stand otherwise than the others of the call, or would give a parameter twice, may be either, and so may pairs that hide a
 * parameter which is not given elsewhere. Within a line, in a call whose delimiters stand on lines of their own, they are text,
 * unless they would give a parameter that the call lacks. Beside values that hold delimiters, the boundary before a parameter
 * that the tool does not have, or before a number, may be either.
 *
 * Repairs, where the family allows them: the last end may be missing, and so may one before a known parameter on a line of its
 * own, if the value can't be text.
 */
export function readRawValues(body: string, syntax: ParameterSyntax, known: KnownParameters): RawValues | null {
  const { masked, hidden } = maskNested(body, syntax, known);
  const marks = marksIn(masked, syntax, known);
  const [first] = marks;
  if (first?.kind !== 'open' || first.name === null || masked.slice(0, first.from).trim() !== '') return null;
  const walk = new Walk({ body, masked, marks, first, syntax, known });
  for (let at = 1; at < marks.length; ) {
    const taken = walk.take(at);
    if (taken === null) return null;
    at += taken;
  }
  return walk.finish(hidden);
}

interface WalkInput {
  readonly body: string;
  /** The body with other characters over the calls in its values. */
  readonly masked: string;
  readonly marks: readonly Mark[];
  readonly first: Mark;
  readonly syntax: ParameterSyntax;
  readonly known: KnownParameters;
}

/** Walks over the marks of a call and collects its values. */
class Walk {
  readonly #body: string;
  readonly #masked: string;
  readonly #marks: readonly Mark[];
  readonly #ends: Ends;
  readonly #syntax: ParameterSyntax;
  readonly #known: KnownParameters;
  readonly #values = new Map<string, string>();
  #current: Mark | null;
  #isRepaired: boolean;
  /** The number of openings in the current value that no end has followed. */
  #depth = 0;
  #hasUnpairedEnd = false;
  #hasInnerBoundary = false;
  /** The names of parameters that a value may hold or hide. */
  readonly #inner: string[] = [];

  constructor({ body, masked, marks, first, syntax, known }: WalkInput) {
    this.#body = body;
    this.#masked = masked;
    this.#marks = marks;
    this.#ends = { first, last: marks.findLast(({ kind }) => kind === 'close') ?? null };
    this.#syntax = syntax;
    this.#known = known;
    this.#current = first;
    this.#isRepaired = isRewritten(first);
  }

  /** Takes the mark at an index, and the next one with it if they are a boundary. Returns how many; null if the call is unclear. */
  take(at: number): 1 | 2 | null {
    const mark = this.#marks[at];
    if (mark === undefined || this.#current === null) return null;
    if (mark.kind === 'open') return this.#open(mark, this.#current);
    const open = this.#marks[at + 1];
    if (open?.kind === 'open' && this.#masked.slice(mark.to, open.from).trim() === '')
      return this.#boundary(mark, open);
    const isLast = mark === this.#ends.last && this.#masked.slice(mark.to).trim() === '';
    if (isLast) return this.#end(mark.from) ? 1 : null;
    this.#hasUnpairedEnd ||= this.#depth === 0;
    this.#depth = Math.max(0, this.#depth - 1);
    return 1;
  }

  /** Returns the values, if the last one has ended and no doubt is left. */
  finish(hidden: readonly string[]): RawValues | null {
    if (this.#current !== null) {
      if (!this.#syntax.mayForgetClose || this.#hasUnpairedEnd || this.#depth > 0) return null;
      if (!this.#end(this.#body.length)) return null;
      this.#isRepaired = true;
    }
    if (this.#hasInnerBoundary && this.#depth > 0) return null;
    const isHidden = (name: string): boolean => this.#known.names.has(name) && !this.#values.has(name);
    if ([...hidden, ...this.#inner].some(isHidden) || this.#isMisread()) return null;
    return { values: this.#values, isRepaired: this.#isRepaired };
  }

  /** Whether delimiters in the values are more likely than a parameter that no tool has, or than a number that holds some. */
  #isMisread(): boolean {
    const { names, allowsText } = this.#known;
    const holders = [...this.#values].filter(
      ([, value]) => isCode.test(value) || value.search(this.#syntax.pattern) >= 0,
    );
    const isUnknown = [...this.#values.keys()].some((name) => names.size > 0 && !names.has(name));
    return holders.some(([name]) => isUnknown || !allowsText(name));
  }

  #open(mark: Mark, current: Mark): 1 | null {
    if (mark.name === null) return 1;
    const { mayForgetClose } = this.#syntax;
    // An opening in the middle of a line is a mention of one in each family whose models forget the end before it.
    const isDoubtful = this.#known.names.has(mark.name) && (!mayForgetClose || this.#masked[mark.from - 1] === '\n');
    if (mayForgetClose && isDoubtful && this.#depth === 0 && !this.#known.allowsText(current.name ?? '')) {
      this.#isRepaired = true;
      return this.#end(mark.from) && this.#begin(mark) ? 1 : null;
    }
    if (isDoubtful) this.#inner.push(mark.name);
    this.#depth += 1;
    return 1;
  }

  #boundary(close: Mark, open: Mark): 1 | 2 | null {
    const { isUsual, isInline } = this.#syntax;
    const boundary: Boundary = { from: this.#current?.to ?? 0, close, open };
    const isUsualHere = isUsual(this.#masked, boundary, this.#ends);
    if (this.#depth > 0 && !(isUsualHere && this.#isOnlyOneOf(open))) {
      this.#hasInnerBoundary = true;
      if (open.name !== null) this.#inner.push(open.name);
      return 2;
    }
    if (isUsualHere) return this.#end(close.from) && this.#begin(open) ? 2 : null;
    const isExpected = open.name === null || (this.#known.names.has(open.name) && !this.#isGiven(open.name));
    if (isExpected || !isInline(this.#masked, boundary, this.#ends)) return null;
    this.#hasUnpairedEnd = true;
    return 1;
  }

  /** Whether an opening is the only one of a parameter without which there is no call. */
  #isOnlyOneOf({ name }: Mark): boolean {
    if (name === null || !this.#known.required.has(name) || this.#isGiven(name)) return false;
    return this.#marks.filter((mark) => mark.name === name).length === 1;
  }

  #isGiven(name: string): boolean {
    return this.#values.has(name) || this.#current?.name === name;
  }

  #begin(mark: Mark): boolean {
    this.#current = mark;
    this.#isRepaired ||= isRewritten(mark);
    this.#depth = 0;
    return mark.name !== null && !this.#values.has(mark.name);
  }

  #end(at: number): boolean {
    const name = this.#current?.name ?? null;
    if (name === null || this.#current === null) return false;
    this.#values.set(name, this.#syntax.valueOf(this.#body.slice(this.#current.to, at)));
    this.#current = null;
    return true;
  }
}

const isCode = new RegExp(anyCode, 'u');

const isRewritten = ({ name, written }: Mark): boolean => name !== written?.trim();

function marksIn(text: string, { pattern, nameOf }: ParameterSyntax, { names }: KnownParameters): Mark[] {
  return [...text.matchAll(pattern)].map(({ index: from, 0: whole, groups = {} }): Mark => {
    const written = groups.name ?? null;
    const name = written === null ? null : nameOf(written, names);
    return { kind: groups.open === undefined ? 'close' : 'open', written, name, from, to: from + whole.length };
  });
}

/** Writes other characters over the calls in values. `hidden` are the parameters that begin right after an end in them. */
function maskNested(
  body: string,
  syntax: ParameterSyntax,
  known: KnownParameters,
): { readonly masked: string; readonly hidden: readonly string[] } {
  const starts: number[] = [];
  const parts: string[] = [];
  const hidden: string[] = [];
  let at = 0;
  for (const { index, 0: whole, groups = {} } of body.matchAll(syntax.nested)) {
    if (groups.start !== undefined) starts.push(index);
    const from = groups.end === undefined ? undefined : starts.pop();
    if (from === undefined || starts.length > 0) continue;
    const to = index + whole.length;
    parts.push(body.slice(at, from), 'x'.repeat(to - from));
    hidden.push(...boundaryNames(body.slice(from, to), syntax, known));
    at = to;
  }
  return { masked: parts.join('') + body.slice(at), hidden };
}

function boundaryNames(text: string, syntax: ParameterSyntax, known: KnownParameters): string[] {
  const marks = marksIn(text, syntax, known);
  return marks.flatMap(({ kind, name, from }, at) => {
    const before = marks[at - 1];
    const follows = kind === 'open' && before?.kind === 'close' && text.slice(before.to, from).trim() === '';
    return follows && name !== null ? [name] : [];
  });
}
