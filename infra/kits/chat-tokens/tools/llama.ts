import { createPieceReader, type Piece, type PieceReader } from '../pieces.ts';
import { broken, isObject, type OfferedTools, offered, parseJson, type Reading, reading, settle } from './call.ts';
import { createJsonScanner } from './json-scanner.ts';
import { memberText } from './member-text.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

/**
 * Parses the syntax of Llama 3.x. A reply that begins with `{"name": …, "parameters": {…}}`, or has it after
 * `<|python_tag|>`, is a call; several are separated by semicolons. The syntax has no marker, so any other JSON is an answer.
 *
 * Nesting: a delimiter inside a JSON string is part of it. What follows JSON that does not end is part of it.
 *
 * Repairs: none. `arguments` may stand for `parameters`, since templates of both kinds exist, and other members are left out.
 *
 * Reasoning: the syntax has none, and `<think>` is text.
 */
export const createLlamaParser = (input: ParserInput): ReplyParser => new LlamaParser(input);

const tag = '<|python_tag|>';

class LlamaParser implements ReplyParser {
  readonly #reader: PieceReader;
  readonly #tools: OfferedTools;
  readonly #prose = createProse();
  /** The parser's state; in `open` a call may begin. */
  #state: 'open' | 'json' | 'text' = 'open';
  #scanner = createJsonScanner();
  /** Whether the buffered text follows the tag. */
  #tagged = false;
  /** Whether text that is not a call follows the tag. */
  #isOther = false;
  #buffer = '';

  constructor({ tokens, tools }: ParserInput) {
    this.#reader = createPieceReader(tokens, [tag]);
    this.#tools = offered(tools);
  }

  push(ids: readonly number[]): readonly ReplyEvent[] {
    return this.#reader.push(ids).flatMap((piece) => this.#read(piece));
  }

  end(): readonly ReplyEvent[] {
    return [...this.#reader.end().flatMap((piece) => this.#read(piece)), ...this.#close()];
  }

  #read(piece: Piece): ReplyEvent[] {
    if ('text' in piece) return this.#addText(piece.text);
    if (this.#state === 'json' && this.#scanner.isInString()) return this.#addText(piece.marker);
    const events = this.#close();
    this.#state = 'open';
    this.#tagged = true;
    this.#isOther = false;
    this.#buffer = '';
    return events;
  }

  #addText(text: string): ReplyEvent[] {
    if (this.#state === 'text') return this.#addReplyText(text);
    if (this.#state === 'json') return this.#scan(text);
    // What is buffered here are separators, or text after the tag that is no call: none of it is looked at again.
    const at = this.#isOther ? 0 : text.search(/[^\s;,]/);
    const begin = this.#buffer.length + at;
    this.#buffer += text;
    if (at < 0) return [];
    if (this.#isOther || text[at] !== '{') {
      if (!this.#tagged) return this.#endAsText(this.#buffer);
      this.#isOther = true;
      return [];
    }
    this.#state = 'json';
    this.#scanner = createJsonScanner();
    const json = this.#buffer.slice(begin);
    this.#buffer = '';
    return this.#scan(json);
  }

  #scan(text: string): ReplyEvent[] {
    const end = this.#scanner.push(text);
    this.#buffer += end === null ? text : text.slice(0, end);
    if (end === null) return [];
    return [...this.#finish(readCall(this.#buffer)), ...this.#addText(text.slice(end))];
  }

  /** Settles the buffered text, which is complete or will never be. Null means that it is not a call, unless it follows the tag. */
  #finish(found: Reading | null): ReplyEvent[] {
    if (!this.#tagged && (found === null || this.#tools.size === 0)) return this.#endAsText(this.#buffer);
    const raw = (this.#tagged ? tag : '') + this.#buffer;
    const { given, event } = settle(found ?? broken('malformed'), raw, this.#tools);
    this.#tagged = false;
    if (!given) return [event, ...this.#endAsText(raw)];
    this.#state = 'open';
    this.#buffer = '';
    this.#prose.reset();
    return [event];
  }

  #close(): ReplyEvent[] {
    if (this.#state === 'json') return this.#finish(beginsCall.test(this.#buffer) ? broken('unclosed') : null);
    if (this.#state === 'text') return [];
    return this.#tagged && this.#buffer.trim() !== '' ? this.#finish(null) : this.#endAsText(this.#buffer);
  }

  #endAsText(text: string): ReplyEvent[] {
    this.#state = 'text';
    this.#buffer = '';
    return this.#addReplyText(text);
  }

  #addReplyText(text: string): ReplyEvent[] {
    const shown = this.#prose.push(text);
    return shown === '' ? [] : [{ kind: 'text', text: shown }];
  }
}

/** Matches text that was meant as a call, whatever follows. */
const beginsCall = /^\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"name"\s*:/;

function readCall(json: string): Reading | null {
  const call = parseJson(json);
  if (!isObject(call)) return beginsCall.test(json) ? broken('invalid-json') : null;
  const key = ['parameters', 'arguments'].find((each) => Object.hasOwn(call, each));
  const { name } = call;
  if (key === undefined || typeof name !== 'string') return null;
  const given = call[key];
  if (!isObject(given)) return broken('invalid-arguments');
  return reading(name, { status: 'ok', text: memberText(json, key) ?? JSON.stringify(given) });
}
