import type { Emulator, Line } from './emulator.ts';

/** The bytes of a terminal that the model sees at a time. The middle of a longer text is left out. */
const shownBytes = 10_000;
/** Lines that scrolled out and are kept until the model sees them: the first ones, and the newest. */
const kept = { first: 200, newest: 1_000 } as const;

/** Shows the model what is new on a terminal. */
export interface View {
  /** Keeps a line that has scrolled out of the screen. */
  keep(line: Line): void;
  /** Returns the lines from the first one that changed since the last call, or the whole screen of a full-screen program. */
  show(terminal: Emulator): string;
}

export function createView(): View {
  /** The lines that scrolled out since the model last looked. */
  let gone: Line[] = [];
  let dropped = 0;
  /** The screen as the model last saw it, down to the line of the cursor. */
  let seen: readonly Line[] = [];

  function newLines({ lines, cursor }: Emulator): string {
    const gap = dropped === 0 ? [] : [{ text: `[${dropped} lines were not kept]`, continues: false }];
    const now = [...gone.slice(0, kept.first), ...gap, ...gone.slice(kept.first), ...lines];
    const changed = seen.findIndex(({ text }, row) => text !== now[row]?.text);
    // The line of the cursor is shown again, because the output continues there.
    const from = changed < 0 ? Math.max(seen.length - 1, 0) : changed;
    seen = lines.slice(0, cursor.row + 1);
    gone = [];
    dropped = 0;
    return joined(now.slice(from));
  }

  return {
    keep(line) {
      gone.push(line);
      if (gone.length <= kept.first + 2 * kept.newest) return;
      gone.splice(kept.first, kept.newest);
      dropped += kept.newest;
    },
    show(terminal) {
      if (!terminal.alternate) return shorten(newLines(terminal));
      const { lines, cursor } = terminal;
      const place = `row ${cursor.row + 1}, column ${cursor.column + 1}`;
      return shorten(`[the screen of a full-screen program, with the cursor in ${place}]\n${joined(lines)}`);
    },
  };
}

/** The text of lines. A line that continues in the next one is joined with it. */
const joined = (lines: readonly Line[]): string =>
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
