import { Readable } from 'node:stream';

/** A part shorter than this is copied, because a copy costs less than a write of its own. */
const longPart = 64 * 1024;

/** Assembles a request's body from parts. Long parts are sent without a copy, since several requests may share them. */
export function bodyOfParts(parts: readonly Buffer[]): {
  readonly body: Buffer | Readable;
  readonly headers: Readonly<Record<string, string>>;
} {
  const writes = joinShortParts(parts);
  const [only = Buffer.alloc(0), ...others] = writes;
  if (others.length === 0) return { body: only, headers: {} };
  const length = writes.reduce((sum, part) => sum + part.length, 0);
  return { body: Readable.from(writes, { objectMode: false }), headers: { 'content-length': String(length) } };
}

function joinShortParts(parts: readonly Buffer[]): readonly Buffer[] {
  const writes: Buffer[] = [];
  let short: Buffer[] = [];
  for (const part of parts) {
    if (part.length < longPart) short.push(part);
    else {
      writes.push(Buffer.concat(short), part);
      short = [];
    }
  }
  return [...writes, Buffer.concat(short)].filter(({ length }) => length > 0);
}
