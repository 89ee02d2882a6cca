import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { callDaemon } from '../daemon.ts';

const eventShape = z.object({
  /** Output of a build. */
  stream: z.string().optional(),
  /** State of a layer that is pulled. */
  status: z.string().optional(),
  id: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
  /** The error that ended the operation. */
  error: z.string().optional(),
});
export type DaemonEvent = z.output<typeof eventShape>;

/** Yields the events that the daemon reports while it pulls or builds, one JSON object per line. */
export async function* daemonEvents(stream: NodeJS.ReadableStream, signal: AbortSignal): AsyncIterable<DaemonEvent> {
  const source = stream as Readable;
  const end = (): unknown => source.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', end, { once: true });
  let failure: unknown;
  source.on('error', (error) => {
    failure = error;
  });
  try {
    signal.throwIfAborted();
    for await (const line of createInterface({ input: source, crlfDelay: Number.POSITIVE_INFINITY })) {
      signal.throwIfAborted();
      if (line.trim() !== '') yield eventShape.parse(JSON.parse(line));
    }
    // Readline ends without an error when its source does, so check why the source ended.
    signal.throwIfAborted();
    if (failure !== undefined) await callDaemon(() => Promise.reject(failure));
  } finally {
    signal.removeEventListener('abort', end);
    source.destroy();
  }
}
