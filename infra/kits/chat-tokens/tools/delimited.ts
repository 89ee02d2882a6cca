import { createPieceReader, type Piece, type PieceReader } from '../pieces.ts';
import { broken, type OfferedTools, offered, type Reading, settle } from './call.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

/** A syntax whose calls stand between two delimiters, next to text and `<think>` reasoning. */
export interface CallSyntax {
  readonly open: string;
  readonly close: string;
  /** Delimiters inside a call. */
  readonly inner?: readonly string[];
  /** Delimiters around calls, which have no meaning of their own. */
  readonly around?: readonly string[];
  /** The `around` delimiters that end reasoning which the model forgot to close. */
  readonly endsReasoning?: readonly string[];
  /**
   * Delimiters of a call whose outer ones the model forgot; the body is a call of an offered tool, or text. `begun` matches
   * the start of a real call rather than a mention of one; its first group is the tool's name.
   */
  readonly bare?: { readonly open: string; readonly close: string; readonly begun: RegExp };
  /** Reads the body between a call's delimiters; the body of a bare call includes its own delimiters. */
  readonly read: (body: readonly Piece[], closed: boolean, tools: OfferedTools) => Reading;
}

/** Creates a parser for one syntax with delimiters. */
export const createDelimitedParser = (input: ParserInput, syntax: CallSyntax): ReplyParser =>
  new DelimitedParser(input, syntax);

/** The source text of pieces, markers included. */
export const textOf = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => ('marker' in piece ? piece.marker : piece.text)).join('');

const openThink = '<think>';
const closeThink = '</think>';

/** The number of ids at a prompt's end in which the template may have opened the reasoning: `<think>` and some whitespace. */
const promptTail = 4;

class DelimitedParser implements ReplyParser {
  readonly #syntax: CallSyntax;
  readonly #around: ReadonlySet<string>;
  readonly #tools: OfferedTools;
  readonly #reader: PieceReader;
  readonly #prose = createProse();
  #state: 'text' | 'reasoning' | 'call' | 'bare-call';
  #body: Piece[] = [];
  /** The text of the last call that began in reasoning which is still open; null if none did. */
  #callInReasoning: string | null = null;

  constructor(input: ParserInput, syntax: CallSyntax) {
    const { open, close, inner = [], around = [], bare } = syntax;
    const bareMarkers = bare === undefined ? [] : [bare.open, bare.close];
    const thinkMarkers = input.thinks ? [openThink, closeThink] : [];
    const markers = new Set([open, close, ...inner, ...around, ...bareMarkers, ...thinkMarkers]);
    this.#syntax = syntax;
    this.#around = new Set(around);
    this.#tools = offered(input.tools);
    this.#reader = createPieceReader(input.tokens, [...markers]);
    this.#state = opensReasoning(input) ? 'reasoning' : 'text';
  }

  push(ids: readonly number[]): readonly ReplyEvent[] {
    return this.#reader.push(ids).flatMap((piece) => this.#read(piece));
  }

  end(): readonly ReplyEvent[] {
    const events = this.#reader.end().flatMap((piece) => this.#read(piece));
    if (this.#state === 'call') return [...events, ...this.#finishCall(false)];
    if (this.#state === 'reasoning' && this.#callInReasoning !== null) {
      return [...events, settle(broken('unclosed'), this.#callInReasoning, this.#tools).event];
    }
    return this.#state === 'bare-call' ? [...events, ...this.#finishBareCall(false)] : events;
  }

  #read(piece: Piece): ReplyEvent[] {
    if ('marker' in piece) return this.#mark(piece.marker);
    if (this.#state === 'text' || this.#state === 'reasoning') return this.#addReplyText(piece.text);
    this.#body.push(piece);
    return [];
  }

  #mark(marker: string): ReplyEvent[] {
    switch (this.#state) {
      case 'text':
        return this.#markInText(marker);
      case 'reasoning':
        return this.#markInReasoning(marker);
      case 'call':
        if (marker === this.#syntax.close) return this.#finishCall(true);
        if (marker === this.#syntax.open) return [...this.#finishCall(false), ...this.#enter('call')];
        return this.#around.has(marker) ? this.#finishCall(false) : this.#keep(marker);
      case 'bare-call':
        if (marker === this.#syntax.open || this.#around.has(marker)) {
          return [...this.#finishBareCall(false), ...this.#mark(marker)];
        }
        this.#keep(marker);
        return marker === this.#syntax.bare?.close ? this.#finishBareCall(true) : [];
    }
  }

  #markInText(marker: string): ReplyEvent[] {
    if (marker === this.#syntax.open) return this.#enter('call');
    if (marker === openThink) return this.#enter('reasoning');
    if (this.#around.has(marker)) return [];
    if (marker !== this.#syntax.bare?.open) return this.#addReplyText(marker);
    this.#enter('bare-call');
    return this.#keep(marker);
  }

  #markInReasoning(marker: string): ReplyEvent[] {
    if (marker !== closeThink && this.#syntax.endsReasoning?.includes(marker) !== true) {
      if (marker === this.#syntax.open) this.#callInReasoning = '';
      return this.#addReplyText(marker);
    }
    this.#prose.reset();
    return this.#enter('text');
  }

  #enter(state: 'text' | 'reasoning' | 'call' | 'bare-call'): ReplyEvent[] {
    this.#state = state;
    this.#body = [];
    this.#callInReasoning = null;
    if (state === 'reasoning' || state === 'call') this.#prose.reset();
    return [];
  }

  #keep(marker: string): ReplyEvent[] {
    this.#body.push({ marker });
    return [];
  }

  #addReplyText(text: string): ReplyEvent[] {
    if (this.#callInReasoning !== null) this.#callInReasoning += text;
    const shown = this.#prose.push(text);
    return shown === '' ? [] : [{ kind: this.#state === 'reasoning' ? 'reasoning' : 'text', text: shown }];
  }

  #finishCall(closed: boolean): ReplyEvent[] {
    const { open, close, read } = this.#syntax;
    const raw = open + textOf(this.#body) + (closed ? close : '');
    const { given, event } = settle(read(this.#body, closed, this.#tools), raw, this.#tools);
    this.#enter('text');
    return given ? [event] : [event, ...this.#addReplyText(raw)];
  }

  #finishBareCall(closed: boolean): ReplyEvent[] {
    const raw = textOf(this.#body);
    const found = closed ? this.#syntax.read(this.#body, true, this.#tools) : null;
    this.#enter('text');
    if (!closed && this.#tools.has(this.#syntax.bare?.begun.exec(raw)?.[1]?.trim() ?? '')) {
      return [settle(broken('unclosed'), raw, this.#tools).event, ...this.#addReplyText(raw)];
    }
    if (found === null || !this.#tools.has(found.name)) return this.#addReplyText(raw);
    this.#prose.reset();
    return [settle(found, raw, this.#tools).event];
  }
}

function opensReasoning({ tokens, promptIds, thinks }: ParserInput): boolean {
  if (!thinks) return false;
  const tail = promptIds.slice(-promptTail);
  const opened = tokens.idOf(openThink);
  const closed = tokens.idOf(closeThink);
  return opened !== null && tail.lastIndexOf(opened) > (closed === null ? -1 : tail.lastIndexOf(closed));
}
