import { createPieceReader, type Piece, type PieceReader } from '../pieces.ts';
import { broken, jsonArguments, type OfferedTools, offered, type Reading, reading, settle } from './call.ts';
import { createJsonScanner, endsInside } from './json-scanner.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

/**
 * Parses the syntax of gpt-oss. A reply is a sequence of messages, `<|channel|>analysis<|message|>…<|end|>`, with
 * `<|start|>assistant` before each further one. A message with a recipient is a call; otherwise `analysis` is reasoning, and
 * any other channel is text for the user.
 *
 * Nesting: a delimiter inside a JSON string of a call is part of it. One that ends the turn can't be, since the engine stops there.
 *
 * Repairs: none. The recipient may stand before the channel, and the arguments may be left out.
 *
 * Reasoning that never ends: `<|start|>` ends it like any message. A call is a message of its own, never a part of it.
 */
export const createHarmonyParser = (input: ParserInput): ReplyParser => new HarmonyParser(input);

const start = '<|start|>';
const channel = '<|channel|>';
const constrain = '<|constrain|>';
const message = '<|message|>';
const end = '<|end|>';
const finish = '<|return|>';
const call = '<|call|>';

interface Head {
  readonly raw: string;
  readonly kind: 'text' | 'reasoning';
  readonly recipient: string | null;
}

class HarmonyParser implements ReplyParser {
  readonly #reader: PieceReader;
  readonly #tools: OfferedTools;
  readonly #prose = createProse();
  readonly #shown = new Set<Head['kind']>();
  /** Whether the next text is the first of its message. */
  #begins = false;
  /** The current message's header; null outside a message's body. */
  #head: Head | null = null;
  /** The text of the header so far, or of the arguments. */
  #buffer = '';
  /** Follows the arguments, to tell a delimiter in one of their strings from one that ends them. */
  #scanner = createJsonScanner();
  /** Whether the arguments begin as JSON does; null before their first character. */
  #isJson: boolean | null = null;

  constructor({ tokens, tools, promptIds }: ParserInput) {
    this.#reader = createPieceReader(tokens, [start, channel, constrain, message, end, finish, call]);
    this.#tools = offered(tools);
    // The prompt may end within the first message's header or body.
    const opening = tokens.idOf(start);
    const from = opening === null ? -1 : promptIds.lastIndexOf(opening);
    if (from >= 0) this.push(promptIds.slice(from));
  }

  push(ids: readonly number[]): readonly ReplyEvent[] {
    return this.#reader.push(ids).flatMap((piece) => this.#read(piece));
  }

  end(): readonly ReplyEvent[] {
    return [...this.#reader.end().flatMap((piece) => this.#read(piece)), ...this.#close('')];
  }

  #read(piece: Piece): ReplyEvent[] {
    if ('text' in piece) return this.#addText(piece.text);
    const { marker } = piece;
    if (this.#isInArgument()) return this.#addText(marker);
    if (marker === end || marker === finish || marker === call) return this.#close(marker);
    if (marker === start) return [...this.#close(''), ...this.#addText(marker)];
    if (marker !== message || this.#head !== null) return this.#addText(marker);
    this.#head = readHead(this.#buffer);
    this.#buffer = '';
    this.#scanner = createJsonScanner();
    this.#isJson = null;
    this.#begin();
    return [];
  }

  #addText(text: string): ReplyEvent[] {
    if (this.#head !== null && this.#head.recipient === null) return this.#addReplyText(this.#head.kind, text);
    this.#buffer += text;
    if (this.#head === null) return [];
    const first = /\S/.exec(text)?.[0];
    if (first !== undefined) this.#isJson ??= first === '{' || first === '[';
    this.#scanner.push(text);
    return [];
  }

  #isInArgument(): boolean {
    return this.#head?.recipient != null && this.#isJson === true && this.#scanner.isInString();
  }

  #begin(): void {
    this.#prose.reset();
    this.#begins = true;
  }

  #addReplyText(kind: Head['kind'], text: string): ReplyEvent[] {
    const shown = this.#prose.push(text);
    if (shown === '') return [];
    const gap = this.#begins && this.#shown.has(kind) ? '\n\n' : '';
    this.#begins = false;
    this.#shown.add(kind);
    return [{ kind, text: gap + shown }];
  }

  #close(marker: string): ReplyEvent[] {
    const events = this.#head === null ? this.#leftOver() : this.#finishMessage(this.#head, marker);
    this.#head = null;
    this.#buffer = '';
    return events;
  }

  /** Shows a header without a message as text, so that nothing that was sampled is lost. */
  #leftOver(): ReplyEvent[] {
    if (/^(?:<\|start\|>)?(?:assistant)?$/.test(this.#buffer.trim())) return [];
    this.#begin();
    return this.#addReplyText('text', this.#buffer);
  }

  #finishMessage({ raw, recipient }: Head, marker: string): ReplyEvent[] {
    if (recipient === null) return [];
    const whole = raw + message + this.#buffer + marker;
    const { given, event } = settle(readCall(recipient, this.#buffer, marker === call), whole, this.#tools);
    this.#begin();
    return given ? [event] : [event, ...this.#addReplyText('text', whole)];
  }
}

/** Reads `<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json`; the recipient may also follow the channel. */
function readHead(raw: string): Head {
  return {
    raw,
    kind: /<\|channel\|>\s*analysis\b/.test(raw) ? 'reasoning' : 'text',
    recipient: /\bto=([^\s<]*)/.exec(raw)?.[1] ?? null,
  };
}

/** Reads a call. A stop token is not always passed to the parser, so only unfinished arguments show that it was cut short. */
function readCall(recipient: string, text: string, closed: boolean): Reading {
  const args = jsonArguments(text);
  if (args.status === 'invalid-json' && !closed && endsInside(text)) return broken('unclosed');
  return reading(recipient.replace(/^functions\./, ''), args);
}
