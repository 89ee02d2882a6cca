/*
 * Words of a Dockerfile, read as BuildKit reads them: without their quotes and escapes, and with the values of variables. What
 * can't be known before the build remains in the word, between two marks.
 */

/** The variables that a word may name. */
export interface Variables {
  /** Returns the value of a variable; undefined if it is not set. */
  get(name: string): string | undefined;
  /** Returns what takes the place of a variable that is not set. */
  unset(name: string): string;
}

/** The character around what is not known. No builder accepts it in a Dockerfile. */
const mark = '\0';
/** The deepest nesting of defaults in each other. */
const deepest = 50;

/** Returns a part of a word that only the build can tell. */
export const unknown = (written: string): string => `${mark}${written}${mark}`;

/** Returns the word whose variable is set by nothing but the image that a stage starts from, if at all. */
export const ofImage = (name: string): string => unknown(`\${${name}}`);

export const isKnown = (word: string): boolean => !word.includes(mark);

/** Returns a word with its unknown parts as they are written. */
export const written = (word: string): string => word.replaceAll(mark, '');

/** Returns a word with its unknown parts as they are written, and each known one as the function returns it. */
export const mapKnown = (word: string, change: (part: string) => string): string =>
  word
    .split(mark)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join('');

/** Splits what follows a keyword into words, each still with its quotes. */
export const splitWords = (text: string): readonly string[] =>
  text.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\])+/gs) ?? [];

/**
 * Returns a word with the values of its variables: `$X`, `${X}`, and a default or an alternative of either form (`${X:-y}`,
 * `${X+y}`). One with another modifier, or with quotes or braces that do not end, is unknown as a whole.
 */
export function expandWord(text: string, variables: Variables): string {
  const reader = new WordReader(text, variables);
  const value = reader.read('', 0);
  return reader.isBroken ? unknown(written(text)) : value;
}

class WordReader {
  isBroken = false;
  readonly #text: string;
  readonly #variables: Variables;
  #at = 0;

  constructor(text: string, variables: Variables) {
    this.#text = text;
    this.#variables = variables;
  }

  /** Reads up to a character outside of quotes, which is read, too. */
  read(end: string, depth: number): string {
    const parts: string[] = [];
    while (this.#at < this.#text.length && !this.isBroken) {
      const char = this.#next();
      if (char === end) return parts.join('');
      if (char === "'") parts.push(this.#until("'"));
      else if (char === '"') parts.push(this.#quoted(depth));
      else if (char === '\\') parts.push(this.#next());
      else parts.push(char === '$' ? this.#variable(depth) : char);
    }
    this.isBroken ||= end !== '';
    return parts.join('');
  }

  #next(): string {
    const char = this.#text[this.#at] ?? '';
    this.#at += 1;
    return char;
  }

  #until(end: string): string {
    const close = this.#text.indexOf(end, this.#at);
    this.isBroken ||= close === -1;
    const found = this.#text.slice(this.#at, close);
    this.#at = close + 1;
    return found;
  }

  #quoted(depth: number): string {
    const parts: string[] = [];
    while (this.#at < this.#text.length && !this.isBroken) {
      const char = this.#next();
      if (char === '"') return parts.join('');
      if (char === '\\') parts.push(/^["$\\]/.test(this.#text.slice(this.#at, this.#at + 1)) ? this.#next() : char);
      else parts.push(char === '$' ? this.#variable(depth) : char);
    }
    this.isBroken = true;
    return '';
  }

  #name(): string {
    const pattern = /[A-Za-z_]\w*|\d+|[@*#?$!-]/y;
    pattern.lastIndex = this.#at;
    const [name = ''] = pattern.exec(this.#text) ?? [];
    this.#at += name.length;
    return name;
  }

  /** Reads what follows a dollar sign. */
  #variable(depth: number): string {
    const { get, unset } = this.#variables;
    if (this.#text[this.#at] !== '{') {
      const name = this.#name();
      return name === '' ? '$' : (get(name) ?? unset(name));
    }
    this.#next();
    const name = this.#name();
    const value = get(name);
    let modifier = this.#next();
    if (modifier === '}' && name !== '') return value ?? unset(name);
    const countsEmpty = modifier === ':';
    if (countsEmpty) modifier = this.#next();
    if (name === '' || depth === deepest || !/^[-+?]$/.test(modifier)) {
      this.isBroken = true;
      return '';
    }
    const word = this.read('}', depth + 1);
    const isSet = value !== undefined && !(countsEmpty && value === '');
    if (modifier === '-') return isSet ? value : word;
    if (modifier === '+') return isSet ? word : '';
    return isSet ? value : unset(name);
  }
}
