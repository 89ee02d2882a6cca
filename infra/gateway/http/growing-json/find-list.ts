/** The position of a list in the text of a JSON object. */
export interface ListRange {
  /** The first byte after the opening bracket. */
  readonly start: number;
  /** The byte after each item and the blanks that follow it. An empty list has one end, too. */
  readonly ends: readonly number[];
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Finds the list that a JSON object has under `key`: like JSON.parse, the last one if there are several. Null when the last
 * value under the key is no list. A text that begins inside the list begins after one of its items, whose end is the first. The
 * text must be valid JSON.
 */
export function findList(bytes: Buffer, key: string, begins: 'before' | 'inside' = 'before'): ListRange | null {
  let found: ListRange | null = null;
  let ends: number[] = [];
  let start = 0;
  let isOpen = begins === 'inside';
  let depth = isOpen ? 2 : 0;
  let isKey = false;
  let nameAt = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      if (depth === 1) nameAt = at;
      at = endOfString(bytes, at);
    } else if (byte === colon && depth === 1) {
      isKey = JSON.parse(bytes.toString('utf8', nameAt, at)) === key;
      if (isKey) found = null;
    } else if (byte === openBracket || byte === openBrace) {
      depth += 1;
      isOpen ||= isKey && depth === 2 && byte === openBracket;
      if (depth === 2) isKey = false;
      if (isOpen && depth === 2) [start, ends] = [at + 1, []];
    } else if (byte === comma && isOpen && depth === 2) {
      ends.push(at);
    } else if (byte === closeBracket || byte === closeBrace) {
      if (isOpen && depth === 2) {
        ends.push(at);
        found = { start, ends };
        isOpen = false;
      }
      depth -= 1;
    }
  }
  return found;
}

/** Returns the position of the quote that ends the string. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(quote, start + 1); end >= 0; end = bytes.indexOf(quote, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === backslash) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return bytes.length;
}
