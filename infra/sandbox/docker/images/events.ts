/** What the daemon says while it pulls or builds: one JSON object per line. */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { callDaemon } from '../daemon.ts';

const eventShape = z.object({
  /** Output of a build. */
  stream: z.string().optional(),
  /** Of a layer that is pulled. */
  status: z.string().optional(),
  id: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
  /** It ended with this. */
  error: z.string().optional(),
});
export type DaemonEvent = z.output<typeof eventShape>;

export async function* eventsOf(stream: NodeJS.ReadableStream, signal: AbortSignal): AsyncIterable<DaemonEvent> {
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
    // Readline ends quietly with its source, whatever ended that.
    signal.throwIfAborted();
    if (failure !== undefined) await callDaemon(() => Promise.reject(failure));
  } finally {
    signal.removeEventListener('abort', end);
    source.destroy();
  }
}
