import type { Emulator } from './emulator.ts';
import { type Line, textOfLine } from './grid.ts';

/** The bytes of a terminal that the model sees at a time. The middle of a longer text is left out. */
const shownBytes = 10_000;
/** Lines that scrolled out and are kept until the model sees them: the first ones, and the newest. */
const kept = { first: 200, newest: 1_000 } as const;

/** Shows the model what is new on a terminal. */
export interface View {
  /** Keeps a line that has scrolled out of the screen. */
  keep(line: Line): void;
  /** Returns the lines that were written since the last call, or the whole screen of a full-screen program. */
  show(terminal: Emulator): string;
}

interface KeptLine {
  readonly text: string;
  readonly continues: boolean;
}

export function createView(): View {
  /** The lines that scrolled out since the model last looked. */
  let lines: KeptLine[] = [];
  let dropped = 0;
  /** The number of lines that had scrolled out when the model last looked. */
  let scrolled = 0;
  /** The line that the cursor was in then, counted from the first of all lines. */
  let seen = 0;

  function newLines({ grid }: Emulator): string {
    // Nothing above the screen that the model saw last can have changed.
    const from = Math.min(seen, grid.takeTouched());
    const gap = dropped === 0 ? [] : [{ text: `[${dropped} lines were not kept]`, continues: false }];
    const gone = [
      ...lines.slice(from - scrolled, kept.first),
      ...gap,
      ...lines.slice(Math.max(kept.first, from - scrolled)),
    ];
    const onScreen = grid.lines.slice(Math.max(from - grid.scrolled, 0)).map(toText);
    scrolled = grid.scrolled;
    seen = scrolled + grid.cursor.row;
    lines = [];
    dropped = 0;
    return joined([...gone, ...onScreen]);
  }

  return {
    keep(line) {
      lines.push(toText(line));
      if (lines.length <= kept.first + 2 * kept.newest) return;
      lines.splice(kept.first, kept.newest);
      dropped += kept.newest;
    },
    show(terminal) {
      if (!terminal.alternate) return shorten(newLines(terminal));
      const { lines: all, cursor } = terminal.grid;
      const place = `row ${cursor.row + 1}, column ${cursor.column + 1}`;
      return shorten(`[the screen of a full-screen program, with the cursor in ${place}]\n${joined(all.map(toText))}`);
    },
  };
}

const toText = (line: Line): KeptLine => ({ text: textOfLine(line), continues: line.continues });

/** The text of lines. A line that continues in the next one is joined with it. */
const joined = (lines: readonly KeptLine[]): string =>
  lines
    .map(({ text, continues }) => (continues ? text : `${text}\n`))
    .join('')
    .trimEnd();

/** Leaves out the middle of a long text. */
export function shorten(text: string, most = shownBytes): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  const half = Math.floor(most / 2);
  const head = bytes
    .subarray(0, half)
    .toString()
    .replace(/\ufffd+$/, '');
  const tail = bytes
    .subarray(-half)
    .toString()
    .replace(/^\ufffd+/, '');
  return `${head}\n[${bytes.length - 2 * half} bytes left out]\n${tail}`;
}
