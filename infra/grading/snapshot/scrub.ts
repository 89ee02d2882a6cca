/** Removes secrets from bytes on their way, without changing their number. */
export interface Scrubber {
  content(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Buffer>;
  text(text: string): string;
}

/** A digit, so that what is encoded stays so. */
const filler = '0'.charCodeAt(0);

/**
 * Creates a scrubber for the secrets of a session, as they are and as base64 or hexadecimal digits have them. The part before the
 * last `~` of each is the session's id, which is no secret.
 */
export function createScrubber(secrets: readonly string[]): Scrubber {
  const patterns = secrets
    .flatMap((secret) => formsOf(secret.slice(secret.lastIndexOf('~') + 1)))
    .filter((form) => form.length > 0);
  const held = Math.max(0, ...patterns.map(({ length }) => length - 1));
  return {
    async *content(bytes) {
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of bytes) {
        const all = Buffer.concat([rest, chunk]);
        overwrite(all, patterns);
        const until = Math.max(0, all.length - held);
        rest = all.subarray(until);
        if (until > 0) yield all.subarray(0, until);
      }
      if (rest.length > 0) yield rest;
    },
    text(text) {
      const bytes = Buffer.from(text);
      overwrite(bytes, patterns);
      return bytes.toString();
    },
  };
}

function overwrite(bytes: Buffer, patterns: readonly Buffer[]): void {
  for (const pattern of patterns) {
    for (let at = bytes.indexOf(pattern); at >= 0; at = bytes.indexOf(pattern, at + pattern.length)) {
      bytes.fill(filler, at, at + pattern.length);
    }
  }
}

/** Returns the forms in which programs may have written a text: itself, in base64 after any text, and in hexadecimal digits. */
function formsOf(key: string): readonly Buffer[] {
  const bytes = Buffer.from(key);
  const encoded = [0, 1, 2].map((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((all.length * 8) / 6)];
    return all.toString('base64').slice(from, to);
  });
  const forms = [
    key,
    ...encoded,
    ...encoded.map((one) => one.replaceAll('+', '-').replaceAll('/', '_')),
    bytes.toString('hex'),
  ];
  return [...new Set(forms)].map((form) => Buffer.from(form));
}
