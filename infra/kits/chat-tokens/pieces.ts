import type { TokenTable } from './token-table.ts';

/** A part of the decoded reply: a delimiter of the model's syntax, or text between two delimiters. */
export type Piece = { readonly marker: string } | { readonly text: string };

export interface PieceReader {
  /** Returns the pieces that are certain by now; the rest waits for more ids. */
  push(ids: readonly number[]): Piece[];
  /** Returns the pieces that were held back. */
  end(): Piece[];
}

/** The ids that may wait for the end of a character, which has at most four bytes; more cannot be valid UTF-8. */
const maxPendingIds = 16;

/**
 * Splits sampled ids at the markers. A marker that is a single token is recognized by its id alone, so that text which merely
 * looks like it stays text. Only a marker that the vocabulary lacks is searched for in the text.
 */
export function createPieceReader(tokens: TokenTable, markers: readonly string[]): PieceReader {
  const byId = new Map<number, string>();
  const byText: string[] = [];
  for (const marker of markers) {
    const id = tokens.idOf(marker);
    if (id === null) byText.push(marker);
    else byId.set(id, marker);
  }
  let decoded: number[] = [];
  let pending: number[] = [];
  let tail = '';

  /** Decodes with the preceding ids as context: some decoders treat a leading space by its position. */
  function decodePending(final: boolean): string {
    if (pending.length === 0) return '';
    const before = decoded.length === 0 ? '' : tokens.decode(decoded);
    const text = tokens.decode([...decoded, ...pending]);
    if (!final && pending.length < maxPendingIds && text.endsWith('\uFFFD')) return '';
    decoded = pending;
    pending = [];
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
          const text = pending.length === 0 ? tokens.textOf(id) : null;
          if (text === null) pending.push(id);
          // Text is read id by id, so that the pieces do not depend on how many ids come at once.
          pieces.push(...readText(text ?? decodePending(false), false));
          continue;
        }
        pieces.push(...readText(decodePending(true), true), { marker });
        decoded = [];
      }
      return pieces;
    },
    end: () => readText(decodePending(true), true),
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

/** The length of the longest suffix of `text` that could be the start of a marker. */
function unfinishedLength(text: string, markers: readonly string[]): number {
  let longest = 0;
  for (const marker of markers) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length -= 1) {
      if (text.endsWith(marker.slice(0, length))) longest = length;
    }
  }
  return longest;
}
