/** A JSON value that was read from a text, with what had to be repaired. */
export interface LenientValue {
  readonly value: unknown;
  /** The index after the value. */
  readonly end: number;
  readonly repairs: ReadonlySet<string>;
}

/** The failure for a text that is not JSON, even if the usual mistakes of models are accepted. */
export class UnreadableJson extends Error {}

const deepest = 32;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};
const words: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
]);
const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /[A-Za-z_]\w*/y;
const space = /\s*/y;
/** The continuations after the end of a text: another part of the JSON, or the next member although the comma is missing. */
const afterText = /\s*(?:[,}\]:]|$|["'][\w -]+["']\s*:)/y;

/**
 * Reads the JSON value that begins at an index. It accepts what models often get wrong: line breaks, quotation marks and
 * unknown escapes inside texts, missing and additional commas, missing brackets at the end, and Python's way of writing.
 */
export function readLenientJson(text: string, from = 0): LenientValue {
  const reader = new Reader(text, from);
  const value = reader.readValue(0);
  return { value, end: reader.at, repairs: reader.repairs };
}

class Reader {
  readonly repairs = new Set<string>();
  readonly #text: string;
  #at: number;

  constructor(text: string, from: number) {
    this.#text = text;
    this.#at = from;
  }

  get at(): number {
    return Math.min(this.#at, this.#text.length);
  }

  readValue(depth: number): unknown {
    this.#skip();
    if (depth > deepest) this.#fail(`expected at most ${deepest} levels`);
    const first = this.#next;
    if (first === '{') return this.#readObject(depth);
    if (first === '[') return this.#readItems(depth);
    if (first === '"' || first === "'") return this.#readText(first);
    const digits = this.#match(number);
    if (digits !== '') return Number(digits);
    const at = this.#at;
    const name = this.#match(word);
    if (words.has(name)) return words.get(name);
    this.#at = at;
    return this.#fail('expected a value');
  }

  #readItems(depth: number): readonly unknown[] {
    const items: unknown[] = [];
    this.#readList(']', () => items.push(this.readValue(depth + 1)));
    return items;
  }

  #readObject(depth: number): object {
    const members: (readonly [string, unknown])[] = [];
    this.#readList('}', () => {
      const quote = this.#next;
      const key =
        quote === '"' || quote === "'" ? this.#readText(quote) : this.#fail('expected a name in quotation marks');
      this.#skip();
      if (this.#next !== ':') this.#fail(`expected a colon after ${JSON.stringify(key)}`);
      this.#at += 1;
      members.push([key, this.readValue(depth + 1)]);
    });
    return Object.fromEntries(members);
  }

  /** Reads what is between brackets, one by one, with the commas. */
  #readList(close: string, readOne: () => void): void {
    this.#at += 1;
    for (let isFirst = true; ; isFirst = false) {
      const commas = this.#skipCommas();
      const ends = this.#at >= this.#text.length;
      if (commas > 1 || (commas === 1 && (isFirst || ends || this.#next === close))) {
        this.repairs.add('it has a comma too many');
      }
      if (ends) this.repairs.add('closing brackets are missing at its end');
      if (ends || this.#next === close) {
        this.#at += 1;
        return;
      }
      if (commas === 0 && !isFirst) this.repairs.add('it lacks a comma');
      readOne();
    }
  }

  #skipCommas(): number {
    let commas = 0;
    for (this.#skip(); this.#next === ','; this.#skip()) {
      commas += 1;
      this.#at += 1;
    }
    return commas;
  }

  #readText(quote: string): string {
    if (quote === "'") this.repairs.add('its texts are in single quotation marks');
    const parts: string[] = [];
    for (this.#at += 1; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#next;
      if (character === quote) {
        if (this.#endsText()) {
          this.#at += 1;
          return parts.join('');
        }
        this.repairs.add('a text holds a quotation mark that is not escaped');
      } else if (character < ' ') this.repairs.add('a text holds a line break or tab that is not escaped');
      parts.push(character === '\\' ? this.#readEscape() : character);
    }
    return this.#fail('expected the end of a text');
  }

  /** Whether the quotation mark at the current index ends a text. */
  #endsText(): boolean {
    afterText.lastIndex = this.#at + 1;
    return afterText.test(this.#text);
  }

  /** Reads the escape at the current index, and leaves the index at its last character. */
  #readEscape(): string {
    this.#at += 1;
    const letter = this.#next;
    const known = escapes[letter];
    if (known !== undefined) return known;
    const code = letter === 'u' ? /^[0-9a-fA-F]{4}/.exec(this.#text.slice(this.#at + 1, this.#at + 5))?.[0] : undefined;
    if (code !== undefined) {
      this.#at += code.length;
      return String.fromCharCode(Number.parseInt(code, 16));
    }
    this.repairs.add(`a text holds the unknown escape ${JSON.stringify(`\\${letter}`)}`);
    return `\\${letter}`;
  }

  /** The character at the current index; empty at the end. */
  get #next(): string {
    return this.#text[this.#at] ?? '';
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #skip(): void {
    this.#match(space);
  }

  #fail(expected: string): never {
    const near = JSON.stringify(this.#text.slice(this.#at, this.#at + 30));
    throw new UnreadableJson(this.#next === '' ? `${expected}, but it ends there` : `${expected} at ${near}`);
  }
}
