import headless, { type IBuffer, type IMarker, type Terminal } from '@xterm/headless';
import { limitMarks } from './marks.ts';
import { createCutter, pieceBytes } from './pieces.ts';

/** The screen of a terminal: what programs have printed, as a person would see it. xterm.js interprets it. */
export interface Emulator {
  /** Takes output of programs. The promise resolves when all of it is on the screen. */
  write(bytes: Uint8Array): Promise<void>;
  /** Whether some output has not reached the screen yet. */
  readonly writing: boolean;
  /** The lines of the screen that is shown. */
  readonly lines: readonly Line[];
  readonly cursor: Position;
  /** Whether the alternate screen is shown, which full-screen programs use. */
  readonly alternate: boolean;
  /** The number of prompts that a shell has announced, by the sequence OSC 133;A. */
  readonly prompts: number;
  /** Whether the cursor is still in the line of the last prompt. If so, no command runs, unless the prompt has several lines. */
  readonly atPrompt: boolean;
  /** Whether a program has switched the cursor keys to their application codes (DECCKM), as full-screen programs do. */
  readonly applicationKeys: boolean;
}

export interface Line {
  readonly text: string;
  /** Whether the text continues on the next line. */
  readonly continues: boolean;
}

export interface Size {
  readonly rows: number;
  readonly columns: number;
}

/** A position on the screen, counted from 0. */
export interface Position {
  readonly row: number;
  readonly column: number;
}

export interface EmulatorEvents {
  /** Called for each line that has scrolled out of the normal screen. */
  readonly onScroll: (line: Line) => void;
  /** Called with what the terminal answers to a program. */
  readonly onAnswer: (text: string) => void;
}

/**
 * The lines that have scrolled out are taken over after each piece of output, and kept until then: hardly any byte makes more than
 * two lines.
 */
const keptLines = 2 * pieceBytes;

export function createEmulator(size: Size, { onScroll, onAnswer }: EmulatorEvents): Emulator {
  const terminal = new headless.Terminal({
    rows: size.rows,
    cols: size.columns,
    scrollback: keptLines,
    allowProposedApi: true,
    logLevel: 'off',
  });
  limitMarks(terminal.unicode);
  terminal.onData(onAnswer);
  const takeScrolled = followScrolling(terminal, onScroll);
  const prompts = followPrompts(terminal);
  guard(terminal, size);
  const cut = createCutter();
  let unwritten = 0;

  return {
    async write(bytes) {
      unwritten += 1;
      for (const piece of cut(bytes)) terminal.write(piece, takeScrolled);
      await new Promise<void>((resolve) => terminal.write('', resolve));
      unwritten -= 1;
    },
    get writing() {
      return unwritten > 0;
    },
    get lines() {
      const { active } = terminal.buffer;
      return Array.from({ length: size.rows }, (_, row) => readLine(active, active.baseY + row));
    },
    get cursor() {
      const { cursorX, cursorY } = terminal.buffer.active;
      // After the last column was written, the cursor is behind it until the next character.
      return { row: cursorY, column: Math.min(cursorX, size.columns - 1) };
    },
    get alternate() {
      return isAlternate(terminal);
    },
    get prompts() {
      return prompts.count;
    },
    get atPrompt() {
      return prompts.isCurrent;
    },
    get applicationKeys() {
      return terminal.modes.applicationCursorKeysMode;
    },
  };
}

const isAlternate = ({ buffer }: Terminal): boolean => buffer.active.type === 'alternate';

function readLine(buffer: IBuffer, at: number): Line {
  // Behind the last line, xterm.js may return the first one.
  const continues = at + 1 < buffer.length && buffer.getLine(at + 1)?.isWrapped === true;
  const text = buffer.getLine(at)?.translateToString(!continues) ?? '';
  return { text: continues ? text : text.trimEnd(), continues };
}

/** Returns a function that takes over the lines that have scrolled out of the normal screen, before xterm.js drops them. */
function followScrolling(terminal: Terminal, onScroll: EmulatorEvents['onScroll']): () => void {
  /** A mark at the last line that was above the screen, which moves with it. */
  let mark: IMarker | undefined;
  /** The lines after the mark that were taken over, while the alternate screen is shown and no mark can be set. */
  let taken = 0;

  function take(): void {
    const { normal } = terminal.buffer;
    const from = mark?.isDisposed ? 0 : (mark?.line ?? -1) + 1 + taken;
    for (let at = from; at < normal.baseY; at += 1) onScroll(readLine(normal, at));
    taken += Math.max(normal.baseY - from, 0);
    if (isAlternate(terminal) || taken === 0) return;
    mark?.dispose();
    mark = terminal.registerMarker(-normal.cursorY - 1);
    taken = 0;
  }

  terminal.buffer.onBufferChange(take);
  // A full reset (RIS) forgets all lines.
  terminal.parser.registerEscHandler({ final: 'c' }, () => {
    take();
    mark = undefined;
    taken = 0;
    return false;
  });
  return take;
}

function followPrompts(terminal: Terminal) {
  let count = 0;
  let mark: IMarker | undefined;
  terminal.parser.registerOscHandler(133, (text) => {
    if (!text.startsWith('A')) return true;
    count += 1;
    mark?.dispose();
    mark = terminal.registerMarker();
    return true;
  });
  terminal.parser.registerEscHandler({ final: 'c' }, () => {
    mark = undefined;
    return false;
  });
  return {
    get count() {
      return count;
    },
    get isCurrent() {
      const { normal } = terminal.buffer;
      return !isAlternate(terminal) && mark?.line === normal.baseY + normal.cursorY;
    },
  };
}

/** Leaves out what would let a program stop the agent or take its memory, and what would drop lines that the model has not seen. */
function guard({ parser }: Terminal, { rows, columns }: Size): void {
  // xterm.js carries out a sequence as often as its count says, up to two billion times.
  const limit = (final: string, most: number) =>
    parser.registerCsiHandler({ final }, ([times]) => Number(times) > most);
  for (const final of ['L', 'M', 'S', 'T', 'I', 'Z']) limit(final, rows);
  limit('b', columns);
  // Erasing the lines that have scrolled out.
  parser.registerCsiHandler({ final: 'J' }, ([what]) => what === 3);
  // Titles and links. Each link is kept as long as its line.
  for (const message of [0, 1, 2, 8]) parser.registerOscHandler(message, () => true);
}
