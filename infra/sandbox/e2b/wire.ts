import { z } from 'zod';

// The messages of envd's Process service that temper reads, as the Connect protocol sends them in JSON. Numbers and booleans
// that are zero or false are left out.

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));

export const processEvent = z.object({
  event: z.object({
    start: z.object({ pid: z.number().int() }).optional(),
    data: z.object({ stdout: bytes.optional(), stderr: bytes.optional() }).optional(),
    end: z
      .object({
        exitCode: z.number().int().default(0),
        exited: z.boolean().default(false),
        status: z.string().default(''),
      })
      .optional(),
  }),
});
export type ProcessEvent = z.output<typeof processEvent>['event'];

export const rpcError = z.object({ code: z.string(), message: z.string().default('') });
export const endOfStream = z.object({ error: rpcError.optional() });

/** The part of envd's own measurements that temper uses. */
export const metrics = z.object({ disk_used: z.number() });

/** Flag of the last frame of a stream, which holds its error if there is one. */
const lastFlag = 2;
const headerBytes = 5;
const nothing: Buffer = Buffer.alloc(0);
/** The largest frame that is read. envd sends outputs in pieces of 32 KB, which base64 makes larger by a third. */
const mostBytes = 256 * 2 ** 10;

export interface Frame {
  readonly last: boolean;
  readonly text: string;
}

export function frame(message: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(text.length, 1);
  return Buffer.concat([header, text]);
}

/** Reads the frames of a stream. It reads no further than its reader asks. */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  let rest = nothing;
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < headerBytes) break;
      const length = rest.readUInt32BE(1);
      if (length > mostBytes) throw new Error(`expected a frame of at most ${mostBytes} bytes, got ${length}`);
      const end = headerBytes + length;
      if (rest.length < end) break;
      yield { last: (rest.readUInt8(0) & lastFlag) !== 0, text: rest.toString('utf8', headerBytes, end) };
      rest = rest.subarray(end);
    }
    // An empty view of a chunk would keep its memory until the next one.
    if (rest.length === 0) rest = nothing;
  }
}
