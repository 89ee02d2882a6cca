import type { CarriedEntry, CarriedHeader, Contents } from '../changes.ts';
import { piecesOf } from './contents.ts';

// The changes of a sandbox on their way in or out of a Pod: frames of JSON with their length in four bytes before them. The first
// ones are pieces of `Contents`, until a `BeginFrame`; each of the others is an `EntryFrame` with the content of a file behind it,
// until the `end`.
//
// This file also runs in Pods, from its text, so it imports no package.

export interface BeginFrame {
  readonly begin: true;
  readonly tooMany: boolean;
}

export type EntryFrame = Omit<CarriedHeader, 'mtime'> & { readonly mtimeMs: number };

/** The last frame, by which a reader knows that nothing was cut. */
export const end = { end: true } as const;

const lengthBytes = 4;
/** The largest frame: a piece of names, or a path and a target, of which JSON writes each character as up to six. */
export const largestFrame = 128 * 2 ** 10;

/** Yields changes as bytes. */
export async function* encodeChanges(
  contents: Contents,
  tooMany: boolean,
  entries: AsyncIterable<CarriedEntry>,
): AsyncIterable<Buffer> {
  for (const piece of piecesOf(contents)) yield frame(piece);
  yield frame({ begin: true, tooMany });
  for await (const { header, content } of entries) {
    const { mtime, ...rest } = header;
    yield frame({ ...rest, mtimeMs: mtime.getTime() });
    for await (const chunk of content) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
  yield frame(end);
}

export function headerOf({ mtimeMs, ...rest }: EntryFrame): CarriedHeader {
  return { ...rest, mtime: new Date(mtimeMs) };
}

function frame(value: Contents | BeginFrame | EntryFrame | typeof end): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}

export interface FrameReader {
  /** Returns the value of the next frame. Throws if the bytes end before it. */
  next(): Promise<unknown>;
  /** Yields the bytes behind the last frame. They have to be read before the next one. */
  content(size: number): AsyncIterable<Uint8Array>;
  /** Reads all that is left, and drops it. */
  skipRest(): Promise<void>;
}

/** The end of bytes, without an error of their stream, before a frame or a file has ended. */
export class EndedEarly extends Error {}

/** Reads frames from bytes that arrive in pieces. */
export function readFrames(source: AsyncIterable<Uint8Array>): FrameReader {
  const chunks = source[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();

  /** Yields exactly as many bytes as are asked for. */
  async function* take(size: number): AsyncIterable<Uint8Array> {
    let left = size;
    while (left > 0) {
      if (rest.length === 0) {
        const { done, value } = await chunks.next();
        if (done === true) throw new EndedEarly('the bytes of a sandbox ended before its files');
        rest = value;
      }
      const piece = rest.subarray(0, left);
      rest = rest.subarray(piece.length);
      left -= piece.length;
      if (piece.length > 0) yield piece;
    }
  }

  const takeAll = async (size: number): Promise<Buffer> => {
    const pieces: Uint8Array[] = [];
    for await (const piece of take(size)) pieces.push(piece);
    return Buffer.concat(pieces);
  };

  return {
    async next() {
      const length = (await takeAll(lengthBytes)).readUInt32BE();
      if (length > largestFrame) throw new Error(`expected a frame of at most ${largestFrame} bytes, got ${length}`);
      return JSON.parse((await takeAll(length)).toString('utf8'));
    },
    content: take,
    async skipRest() {
      while ((await chunks.next()).done !== true);
    },
  };
}
