/** The bytes of output that are interpreted at a time. */
export const pieceBytes = 2_048;

/** A message for the terminal itself, such as a title, has no limit in xterm.js but 10 MB, which take 300 MB of memory. */
const longestMessage = 16_384;

const esc = 0x1b;
/** The control character that ends a message, and has no effect elsewhere. */
const cancel = Uint8Array.of(0x18);

/** Returns a function that cuts output into pieces, and ends each message that becomes too long. The rest of it is text. */
export function createCutter(): (bytes: Uint8Array) => Generator<Uint8Array> {
  /** Bytes since the last escape, which starts and ends messages. */
  let since = 0;
  return function* cut(bytes) {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      // The character before it must be whole.
      const start = since < longestMessage ? -1 : piece.findIndex((byte) => (byte & 0xc0) !== 0x80);
      if (start >= 0) {
        yield piece.subarray(0, start);
        yield cancel;
      }
      yield piece.subarray(Math.max(start, 0));
      const last = piece.lastIndexOf(esc);
      since = last < 0 ? since + piece.length : piece.length - last;
    }
  };
}
