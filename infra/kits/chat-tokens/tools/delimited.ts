import { createPieceReader, type Piece, type PieceReader } from '../pieces.ts';
import { broken, isWellFormed, type OfferedTools, offered, type Reading, settle } from './call.ts';
import { type Codes, createCodes } from './codes.ts';
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
  /** The text with which a call may begin whose opening delimiter the model forgot. */
  readonly bare?: string;
  /** Reads the rest of a reply from its first delimiter of a call on, as coded text. */
  readonly read: (rest: string, codes: Codes, tools: OfferedTools) => readonly Span[];
}

/** A part of a reply in coded text: a call with its reading, or text if that is null. */
export interface Span {
  readonly coded: string;
  readonly reading: Reading | null;
}

/**
 * Creates a parser for one syntax with delimiters.
 *
 * Values may hold each of the delimiters, so the first one of a call decides nothing: the rest of the reply is kept until its
 * end and read as a whole. Text before it is given immediately.
 *
 * Reasoning ends at `</think>` alone: what looks like a call before it is a thought. Where reasoning never ends, a call of an
 * offered tool that is the last of the reply ends it, and counts as repaired; any other call in it is counted and not given.
 */
export const createDelimitedParser = (input: ParserInput, syntax: CallSyntax): ReplyParser =>
  new DelimitedParser(input, syntax);

const openThink = '<think>';
const closeThink = '</think>';

/** The number of ids at a prompt's end in which the template may have opened the reasoning: `<think>` and some whitespace. */
const promptTail = 4;

class DelimitedParser implements ReplyParser {
  readonly #syntax: CallSyntax;
  readonly #tools: OfferedTools;
  readonly #codes: Codes;
  readonly #reader: PieceReader;
  readonly #prose = createProse();
  #state: 'text' | 'reasoning';
  /** The coded rest of the reply, or of its reasoning, from the first delimiter of a call on; null before one. */
  #rest: string | null = null;

  constructor(input: ParserInput, syntax: CallSyntax) {
    const { open, close, inner = [], around = [], bare } = syntax;
    const thinkMarkers = input.thinks ? [openThink, closeThink] : [];
    const markers = [open, close, ...inner, ...around, ...(bare === undefined ? [] : [bare]), ...thinkMarkers];
    this.#syntax = syntax;
    this.#tools = offered(input.tools);
    this.#codes = createCodes(markers);
    this.#reader = createPieceReader(input.tokens, [...new Set(markers)]);
    this.#state = opensReasoning(input) ? 'reasoning' : 'text';
  }

  push(ids: readonly number[]): readonly ReplyEvent[] {
    return this.#reader.push(ids).flatMap((piece) => this.#read(piece));
  }

  end(): readonly ReplyEvent[] {
    const events = this.#reader.end().flatMap((piece) => this.#read(piece));
    if (this.#rest === null) return events;
    const spans = this.#syntax.read(this.#rest, this.#codes, this.#tools);
    return [...events, ...(this.#state === 'text' ? this.#give(spans) : this.#endInReasoning(spans, this.#rest))];
  }

  #read(piece: Piece): ReplyEvent[] {
    const marker = 'marker' in piece ? piece.marker : null;
    if (this.#state === 'reasoning' && marker !== null && this.#endsReasoning(marker)) return this.#leaveReasoning();
    if (this.#rest !== null) {
      this.#rest += this.#codes.encode(piece);
      return [];
    }
    if (marker === null) return this.#addReplyText(this.#codes.encode(piece));
    const { open, close, around = [], bare } = this.#syntax;
    const isText = this.#state === 'text';
    if (marker === open || marker === bare || (marker === close && isText)) {
      this.#rest = this.#codes.of(marker);
      return [];
    }
    if (isText && marker === openThink) {
      this.#prose.reset();
      this.#state = 'reasoning';
      return [];
    }
    return isText && around.includes(marker) ? [] : this.#addReplyText(marker);
  }

  #endsReasoning(marker: string): boolean {
    return marker === closeThink || this.#syntax.endsReasoning?.includes(marker) === true;
  }

  #leaveReasoning(): ReplyEvent[] {
    const events = this.#rest === null ? [] : this.#addReplyText(this.#codes.decode(this.#rest));
    this.#rest = null;
    this.#prose.reset();
    this.#state = 'text';
    return events;
  }

  #give(spans: readonly Span[]): ReplyEvent[] {
    return spans.flatMap(({ coded, reading }) => {
      const raw = this.#codes.decode(coded);
      if (reading === null) return this.#addReplyText(raw);
      const { given, event } = settle(reading, raw, this.#tools);
      if (!given) return [event, ...this.#addReplyText(raw)];
      this.#prose.reset();
      return [event];
    });
  }

  #endInReasoning(spans: readonly Span[], rest: string): ReplyEvent[] {
    const isSure = spans.every(({ coded, reading }) =>
      reading === null ? coded.trim() === '' : isWellFormed(reading) && this.#tools.has(reading.name),
    );
    const calls = spans.flatMap(({ coded, reading }): Span[] =>
      reading === null ? [] : [{ coded, reading: { ...reading, status: 'repaired' } }],
    );
    if (isSure && calls.length > 0) {
      this.#rest = null;
      return [...this.#leaveReasoning(), ...this.#give(calls)];
    }
    const raw = this.#codes.decode(rest);
    const shown = this.#addReplyText(raw);
    return calls.length === 0 ? shown : [...shown, settle(broken('unclosed'), raw.trimEnd(), this.#tools).event];
  }

  #addReplyText(text: string): ReplyEvent[] {
    const shown = this.#prose.push(text);
    return shown === '' ? [] : [{ kind: this.#state, text: shown }];
  }
}

/** Whether the template has opened the reasoning at the prompt's end. */
export function opensReasoning({ tokens, promptIds, thinks }: ParserInput): boolean {
  if (!thinks) return false;
  const tail = promptIds.slice(-promptTail);
  const opened = tokens.idOf(openThink);
  const closed = tokens.idOf(closeThink);
  return opened !== null && tail.lastIndexOf(opened) > (closed === null ? -1 : tail.lastIndexOf(closed));
}
