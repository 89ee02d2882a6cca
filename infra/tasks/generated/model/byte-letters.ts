/**
 * The letters by which byte-level tokenizers write bytes (GPT-2's table): printable bytes stand for themselves, the others
 * for the letters from U+0100 on, in order.
 */
export function byteLetters(): readonly string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}
