/**
 * A 32-bit hash of a text that is equal everywhere: FNV-1a (Fowler, Noll and Vo, http://www.isthe.com/chongo/tech/comp/fnv/),
 * applied to code points instead of bytes, which is the same for ASCII. Recorded seeds depend on it, so its values must not
 * change. Not suitable for untrusted keys or for secrets.
 */
export function hashText(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return value;
}
