import type { TokenTable } from './token-table.ts';

/** What sampled ids say: a delimiter of the model's syntax, or text between two of them. */
export type Piece = { readonly marker: string } | { readonly text: string };

export interface PieceReader {
  /** Returns what is certain by now; the rest waits for more ids. */
  push(ids: readonly number[]): Piece[];
  end(): Piece[];
}

/** A character has at most four bytes, so ids held back for an unfinished one are few; more are no UTF-8 at all. */
const maxHeldIds = 16;

/**
 * Splits sampled ids at the markers. A marker that is one token counts by its id alone, so that text which merely looks
 * like it stays text; only a marker that the vocabulary lacks is looked for in the text.
 */
export function createPieceReader(tokens: TokenTable, markers: readonly string[]): PieceReader {
  const byId = new Map<number, string>();
  const byText: string[] = [];
  for (const marker of markers) {
    const id = tokens.idOf(marker);
    if (id === null) byText.push(marker);
    else byId.set(id, marker);
  }
  let shown: number[] = [];
  let held: number[] = [];
  let tail = '';

  /** Decodes with the ids before as context: some decoders treat a leading space by its position. */
  function decodeHeld(final: boolean): string {
    if (held.length === 0) return '';
    const before = shown.length === 0 ? '' : tokens.decode(shown);
    const text = tokens.decode([...shown, ...held]);
    if (!final && held.length < maxHeldIds && text.endsWith('\uFFFD')) return '';
    shown = held;
    held = [];
    return text.slice(before.length);
  }

  function readText(text: string, final: boolean): Piece[] {
    const pieces: Piece[] = [];
    let rest = tail + text;
    for (let found = earliest(rest, byText); found !== null; found = earliest(rest, byText)) {
      if (found.start > 0) pieces.push({ text: rest.slice(0, found.start) });
      pieces.push({ marker: found.marker });
      rest = rest.slice(found.start + found.marker.length);
    }
    const keep = final ? 0 : unfinishedLength(rest, byText);
    tail = rest.slice(rest.length - keep);
    if (rest.length > keep) pieces.push({ text: rest.slice(0, rest.length - keep) });
    return pieces;
  }

  return {
    push(ids) {
      const pieces: Piece[] = [];
      for (const id of ids) {
        const marker = byId.get(id);
        if (marker === undefined) {
          const text = held.length === 0 ? tokens.textOf(id) : null;
          if (text === null) held.push(id);
          // At each id, not at each push: then it makes no difference how many come at once.
          pieces.push(...readText(text ?? decodeHeld(false), false));
          continue;
        }
        pieces.push(...readText(decodeHeld(true), true), { marker });
        shown = [];
      }
      return pieces;
    },
    end: () => readText(decodeHeld(true), true),
  };
}

function earliest(text: string, markers: readonly string[]): { start: number; marker: string } | null {
  let best: { start: number; marker: string } | null = null;
  for (const marker of markers) {
    const start = text.indexOf(marker);
    if (start >= 0 && (best === null || start < best.start)) best = { start, marker };
  }
  return best;
}

/** Length of the longest end of `text` that could be the start of a marker. */
function unfinishedLength(text: string, markers: readonly string[]): number {
  let longest = 0;
  for (const marker of markers) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length -= 1) {
      if (text.endsWith(marker.slice(0, length))) longest = length;
    }
  }
  return longest;
}
