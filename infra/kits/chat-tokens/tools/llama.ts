import { createPieceReader, type Piece, type PieceReader } from '../pieces.ts';
import { broken, isObject, type OfferedTools, offered, parseJson, type Reading, reading, settle } from './call.ts';
import { createJsonScanner } from './json-scanner.ts';
import { memberText } from './member-text.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

/**
 * Llama 3.x: a reply that begins with `{"name": …, "parameters": {…}}`, or has it behind `<|python_tag|>`, is a call, or several
 * with semicolons between. Nothing marks it as one, so that any other JSON is an answer.
 */
export const createLlamaParser = (input: ParserInput): ReplyParser => new LlamaParser(input);

const tag = '<|python_tag|>';

class LlamaParser implements ReplyParser {
  readonly #reader: PieceReader;
  readonly #tools: OfferedTools;
  readonly #prose = createProse();
  /** `open`: a call may begin here. */
  #state: 'open' | 'json' | 'text' = 'open';
  #scanner = createJsonScanner();
  /** Is what is heard behind the tag? */
  #tagged = false;
  #heard = '';

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
    if ('text' in piece) return this.#hear(piece.text);
    const events = this.#close();
    this.#state = 'open';
    this.#tagged = true;
    this.#heard = '';
    return events;
  }

  #hear(text: string): ReplyEvent[] {
    if (this.#state === 'text') return this.#say(text);
    if (this.#state === 'json') return this.#scan(text);
    this.#heard += text;
    const begin = this.#heard.search(/[^\s;,]/);
    if (begin < 0) return [];
    if (this.#heard[begin] !== '{') return this.#tagged ? [] : this.#sayHeard(this.#heard);
    this.#state = 'json';
    this.#scanner = createJsonScanner();
    const json = this.#heard.slice(begin);
    this.#heard = '';
    return this.#scan(json);
  }

  #scan(text: string): ReplyEvent[] {
    const end = this.#scanner.push(text);
    this.#heard += end === null ? text : text.slice(0, end);
    if (end === null) return [];
    return [...this.#finish(readCall(this.#heard)), ...this.#hear(text.slice(end))];
  }

  /** What has been heard is whole, or never will be. Null: it is no call, unless the tag says that it is one. */
  #finish(found: Reading | null): ReplyEvent[] {
    if (!this.#tagged && (found === null || this.#tools.size === 0)) return this.#sayHeard(this.#heard);
    const raw = (this.#tagged ? tag : '') + this.#heard;
    const { given, event } = settle(found ?? broken('malformed'), raw, this.#tools);
    this.#tagged = false;
    if (!given) return [event, ...this.#sayHeard(raw)];
    this.#state = 'open';
    this.#heard = '';
    this.#prose.reset();
    return [event];
  }

  #close(): ReplyEvent[] {
    if (this.#state === 'json') return this.#finish(beginsCall.test(this.#heard) ? broken('unclosed') : null);
    if (this.#state === 'text') return [];
    return this.#tagged && this.#heard.trim() !== '' ? this.#finish(null) : this.#sayHeard(this.#heard);
  }

  #sayHeard(text: string): ReplyEvent[] {
    this.#state = 'text';
    this.#heard = '';
    return this.#say(text);
  }

  #say(text: string): ReplyEvent[] {
    const shown = this.#prose.push(text);
    return shown === '' ? [] : [{ kind: 'text', text: shown }];
  }
}

/** What was meant as a call, however it goes on. */
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
