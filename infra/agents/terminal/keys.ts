/** The characters that the keys of a terminal send, by the names that tmux gives to the keys. */
const named: ReadonlyMap<string, string> = new Map(
  Object.entries({
    Enter: '\r',
    Tab: '\t',
    BTab: '\x1b[Z',
    BSpace: '\x7f',
    Backspace: '\x7f',
    Escape: '\x1b',
    Esc: '\x1b',
    Space: ' ',
    Up: '\x1b[A',
    Down: '\x1b[B',
    Right: '\x1b[C',
    Left: '\x1b[D',
    Home: '\x1b[H',
    End: '\x1b[F',
    IC: '\x1b[2~',
    Insert: '\x1b[2~',
    DC: '\x1b[3~',
    Delete: '\x1b[3~',
    PPage: '\x1b[5~',
    PageUp: '\x1b[5~',
    PgUp: '\x1b[5~',
    NPage: '\x1b[6~',
    PageDown: '\x1b[6~',
    PgDn: '\x1b[6~',
    F1: '\x1bOP',
    F2: '\x1bOQ',
    F3: '\x1bOR',
    F4: '\x1bOS',
    F5: '\x1b[15~',
    F6: '\x1b[17~',
    F7: '\x1b[18~',
    F8: '\x1b[19~',
    F9: '\x1b[20~',
    F10: '\x1b[21~',
    F11: '\x1b[23~',
    F12: '\x1b[24~',
  }),
);

const control = /^(?:C-|\^)([a-z@[\\\]^_?])$/i;
const meta = /^M-(.+)$/s;

/**
 * Returns the characters to send for keystrokes: those of a key if the keystrokes are its name (`C-c`, `Enter`, `M-x`), otherwise
 * the text itself, with Enter for each line break. A line break after a key with Ctrl is left out.
 */
export function readKeys(keystrokes: string): string {
  const name = keystrokes.trimEnd();
  const key = name === keystrokes || control.test(name) ? keyOf(name) : null;
  return key ?? keystrokes.replaceAll(/\r?\n/g, '\r');
}

function keyOf(name: string): string | null {
  const known = named.get(name);
  if (known !== undefined) return known;
  const letter = control.exec(name)?.[1]?.toUpperCase();
  if (letter !== undefined) return letter === '?' ? '\x7f' : String.fromCharCode(letter.charCodeAt(0) & 0x1f);
  const held = meta.exec(name)?.[1];
  if (held === undefined) return null;
  const key = [...held].length === 1 ? held : keyOf(held);
  return key === null ? null : `\x1b${key}`;
}

/** Returns the codes to send instead to a program that has switched the cursor keys to their application codes (DECCKM). */
export const applicationKeys = (sent: string): string =>
  sent.length === 3 && /\[[A-DFH]$/.test(sent) ? sent.replace('\x1b[', '\x1bO') : sent;
