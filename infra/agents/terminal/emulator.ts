import { StringDecoder } from 'node:string_decoder';
import { controls, readNumbers } from './controls.ts';
import { createGrid, type Grid, type Line, type Position, type Size } from './grid.ts';

/**
 * The parts of a VT100 and an xterm that programs use: text, cursor movements, erasing, scrolling, the alternate screen of
 * full-screen programs, and answers to questions about the terminal. Colours and most modes are ignored.
 */
export interface Emulator {
  write(bytes: Buffer): void;
  /** The grid that is shown. */
  readonly grid: Grid;
  /** Whether the alternate screen is shown, which full-screen programs use. */
  readonly alternate: boolean;
  /** The number of prompts that a shell has announced, by the sequence OSC 133;A. */
  readonly prompts: number;
  /** Whether the cursor is still in the line of the last prompt. If so, no command runs, unless the prompt has several lines. */
  readonly atPrompt: boolean;
}

export interface EmulatorEvents {
  /** Called for each line that scrolls out of the normal screen. */
  readonly onScroll: (line: Line) => void;
  /** Called with what the terminal answers to a program. */
  readonly onAnswer: (text: string) => void;
}

const esc = '\x1b';
/** The longest sequence that is read. Of a longer one, this much is left out, and the rest is text. */
const longestSequence = 16_384;

/** Patterns of sequences without their ESC, and of the start of a sequence whose end is missing. */
const control = /^\[([0-?]*)[ -/]*([@-~])/;
const controlSoFar = /^\[[0-?]*[ -/]*/;
const short = /^[ -/]*[0-~]/;
const shortSoFar = /^[ -/]*/;
/** The start of a text for the terminal itself, such as a title; BEL or ST ends it. */
const messageStart = /^[\]PX^_]/;
const messageEnds = ['\x07', `${esc}\\`];
const promptStart = ']133;A';

export const createEmulator = (size: Size, events: EmulatorEvents): Emulator => new Xterm(size, events);

class Xterm implements Emulator {
  readonly #decoder = new StringDecoder('utf8');
  readonly #size: Size;
  readonly #normal: Grid;
  readonly #onAnswer: EmulatorEvents['onAnswer'];
  #alternate: Grid | null = null;
  #saved: Position = { row: 0, column: 0 };
  #prompts = 0;
  /** The line of the last prompt, counted from the first of all lines. */
  #promptLine: number | null = null;
  /** The start of a sequence whose end has not come yet. */
  #pending = '';
  /** Whether letters are shown as line-drawing characters (DEC Special Graphics). */
  #drawing = false;

  constructor(size: Size, { onScroll, onAnswer }: EmulatorEvents) {
    this.#size = size;
    this.#normal = createGrid(size, onScroll);
    this.#onAnswer = onAnswer;
  }

  get grid(): Grid {
    return this.#alternate ?? this.#normal;
  }

  get alternate(): boolean {
    return this.#alternate !== null;
  }

  get prompts(): number {
    return this.#prompts;
  }

  get atPrompt(): boolean {
    return this.#alternate === null && this.#promptLine === this.#line;
  }

  get #line(): number {
    return this.#normal.scrolled + this.#normal.cursor.row;
  }

  write(bytes: Buffer): void {
    const text = this.#pending + this.#decoder.write(bytes);
    this.#pending = '';
    for (let at = 0; at < text.length; ) {
      if (text[at] === esc) {
        const length = this.#obey(text.slice(at + 1, at + longestSequence));
        if (length === null) {
          this.#pending = text.slice(at);
          return;
        }
        at += 1 + length;
        continue;
      }
      const plain = this.#drawing ? '' : plainAt(text, at);
      if (plain !== '') {
        this.grid.writeNarrow(plain);
        at += plain.length;
      } else {
        const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
        this.#put(character);
        at += character.length;
      }
    }
  }

  #put(character: string): void {
    const { grid } = this;
    if (character >= ' ' && character !== '\x7f') {
      grid.write((this.#drawing && boxes[character]) || character);
      return;
    }
    switch (character) {
      case '\n':
      case '\v':
      case '\f':
        grid.feed();
        break;
      case '\r':
        grid.move({ column: 0 });
        break;
      case '\b':
        grid.move({ column: grid.cursor.column - 1 });
        break;
      case '\t':
        grid.move({ column: (Math.floor(grid.cursor.column / 8) + 1) * 8 });
        break;
      case '\x0e':
      case '\x0f':
        this.#drawing = character === '\x0e';
    }
  }

  /** Carries out the sequence at the start of a text after its ESC. Returns its length; null if its end is missing. */
  #obey(text: string): number | null {
    const given = control.exec(text);
    if (given !== null) {
      this.#control(given[1] ?? '', given[2] ?? '');
      return given[0].length;
    }
    if (text.startsWith('[')) return lengthIfBroken(text, controlSoFar);
    if (messageStart.test(text)) {
      const length = lengthOfMessage(text);
      if (length !== null && text.startsWith(promptStart)) {
        this.#prompts += 1;
        this.#promptLine = this.#line;
      }
      return length;
    }
    const command = short.exec(text)?.[0];
    if (command === undefined) return lengthIfBroken(text, shortSoFar);
    this.#command(command);
    return command.length;
  }

  #command(command: string): void {
    const { grid } = this;
    switch (command) {
      case '7':
        this.#saved = { ...grid.cursor };
        break;
      case '8':
        grid.move(this.#saved);
        break;
      case 'E':
        grid.move({ column: 0 });
        grid.feed();
        break;
      case 'D':
        grid.feed();
        break;
      case 'M':
        grid.reverseFeed();
        break;
      case 'c':
        this.#alternate = null;
        this.#normal.setRegion(0, this.#size.rows - 1);
        this.#normal.eraseRows(0, this.#size.rows);
        break;
      case '(0':
      case '(B':
        this.#drawing = command === '(0';
    }
  }

  #control(parameters: string, final: string): void {
    if (/^[<=>?]/.test(parameters)) {
      this.#setMode(parameters, final);
      return;
    }
    const { grid } = this;
    const { row, column } = grid.cursor;
    const numbers = readNumbers(parameters);
    if (final === 's') this.#saved = { row, column };
    else if (final === 'u') grid.move(this.#saved);
    else if (final === 'c') this.#onAnswer(`${esc}[?1;2c`);
    else if (final === 'n' && numbers.what === 5) this.#onAnswer(`${esc}[0n`);
    else if (final === 'n' && numbers.what === 6) this.#onAnswer(`${esc}[${row + 1};${column + 1}R`);
    else controls.get(final)?.(grid, numbers);
  }

  #setMode(parameters: string, final: string): void {
    if (!/^\?(?:\d+;)*(?:47|1047|1049)(?:;|$)/.test(parameters)) return;
    if (final === 'h') this.#alternate ??= createGrid(this.#size, () => {});
    if (final === 'l') this.#alternate = null;
  }
}

const ascii = /[ -~]+/y;

/** Returns the ASCII text at an index, which is most of what programs print. */
function plainAt(text: string, at: number): string {
  ascii.lastIndex = at;
  return ascii.exec(text)?.[0] ?? '';
}

/** The length of the start of a sequence that can have no end; null if its end may still come. */
function lengthIfBroken(text: string, soFar: RegExp): number | null {
  const length = soFar.exec(text)?.[0].length ?? 0;
  return length === text.length && !isTooLong(text) ? null : length;
}

function lengthOfMessage(text: string): number | null {
  const ends = messageEnds.flatMap((end) => {
    const at = text.indexOf(end);
    return at < 0 ? [] : [at + end.length];
  });
  if (ends.length > 0) return Math.min(...ends);
  return isTooLong(text) ? text.length : null;
}

const isTooLong = (text: string): boolean => text.length >= longestSequence - 1;

/** The line-drawing characters of DEC Special Graphics. */
const boxes: Readonly<Record<string, string>> = {
  j: '┘',
  k: '┐',
  l: '┌',
  m: '└',
  n: '┼',
  q: '─',
  t: '├',
  u: '┤',
  v: '┴',
  w: '┬',
  x: '│',
  a: '▒',
  '`': '◆',
  '~': '·',
};
