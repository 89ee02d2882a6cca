import type { Piece } from '../pieces.ts';

/**
 * Writes replies as coded text, in which each delimiter is one character that no decoded text holds: a lone surrogate. So
 * patterns and scanners tell a delimiter from text that merely looks like it. Patterns need the flag `u`.
 */
export interface Codes {
  /** Returns the character of a delimiter. */
  of(marker: string): string;
  encode(piece: Piece): string;
  /** Returns the text that was sampled. */
  decode(coded: string): string;
}

/** The source of a pattern for any delimiter, and of one for any other character. */
export const anyCode = '[\\uDC00-\\uDFFF]';
export const noCode = '[^\\uDC00-\\uDFFF]';

const first = 0xdc00;

export function createCodes(markers: readonly string[]): Codes {
  const codes = new Map([...new Set(markers)].map((marker, at) => [marker, String.fromCharCode(first + at)]));
  const sources = new Map([...codes].map(([marker, code]) => [code, marker]));
  const pattern = new RegExp(anyCode, 'gu');
  const of = (marker: string): string => {
    const code = codes.get(marker);
    if (code === undefined) throw new Error(`${marker} is no delimiter of this syntax`);
    return code;
  };
  return {
    of,
    encode: (piece) => ('marker' in piece ? of(piece.marker) : piece.text),
    decode: (coded) => coded.replace(pattern, (code) => sources.get(code) ?? code),
  };
}

/** Whether the character at a position is a delimiter, and not the second half of another character. */
export function isCodeAt(coded: string, at: number): boolean {
  const unit = coded.charCodeAt(at);
  if (unit < 0xdc00 || unit > 0xdfff) return false;
  const before = at === 0 ? 0 : coded.charCodeAt(at - 1);
  return before < 0xd800 || before > 0xdbff;
}
