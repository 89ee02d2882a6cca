import { z } from 'zod';
import type { DiffLine } from './plan-changes.ts';

/** The daemon's list of changed paths: 0 changed, 1 added, 2 deleted. */
const diffLines = z.array(z.object({ Path: z.string(), Kind: z.number() }));

export interface ListLimits {
  readonly bytes: number;
  readonly lines: number;
}

const [quote, backslash, opening, closing] = [0x22, 0x5c, 0x7b, 0x7d] as const;
const nothing: Buffer = Buffer.alloc(0);
/** The rest behind the last line of a list, or the whole text of an empty one. */
const ends = /^\s*(?:\[?\s*\]|null)\s*$/;

/**
 * Reads the daemon's list of changed paths, of which an agent makes millions in a minute. Each piece is parsed as it arrives, so that
 * the event loop is never busy with all of it. Returns null as soon as the list exceeds a limit.
 */
export async function readLines(
  pieces: AsyncIterable<Uint8Array>,
  limits: ListLimits,
): Promise<readonly DiffLine[] | null> {
  const lines: DiffLine[] = [];
  const objects = findObjects();
  let bytes = 0;
  // Leaving the loop ends the answer.
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > limits.bytes) return null;
    const found = objects.add(piece);
    if (found === '') continue;
    for (const line of diffLines.parse(JSON.parse(`[${found}]`))) lines.push(line);
    if (lines.length > limits.lines) return null;
  }
  const rest = objects.rest();
  if (!ends.test(rest)) throw new SyntaxError(`expected the end of a list of changed paths, got ${rest.slice(0, 80)}`);
  return lines;
}

interface FoundObjects {
  /** Returns the text of the objects that a piece completes, without what is before them. */
  add(piece: Uint8Array): string;
  /** Returns what has followed the last object. */
  rest(): string;
}

/** Finds the objects of a JSON list that arrives in pieces. Only their braces are counted, outside of texts. */
function findObjects(): FoundObjects {
  let rest = nothing;
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  return {
    add(piece) {
      const bytes = Buffer.concat([rest, piece]);
      let end = 0;
      for (let at = rest.length; at < bytes.length; at += 1) {
        const byte = bytes[at];
        if (isEscaped) isEscaped = false;
        else if (isText && byte === backslash) isEscaped = true;
        else if (byte === quote) isText = !isText;
        else if (isText) continue;
        else if (byte === opening) depth += 1;
        else if (byte === closing) {
          depth -= 1;
          if (depth === 0) end = at + 1;
        }
      }
      rest = bytes.subarray(end);
      return bytes.toString('utf8', 0, end).replace(/^[\s,[]+/, '');
    },
    rest: () => rest.toString('utf8'),
  };
}
