import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelLimits } from './limits.ts';

/** A channel that is kept open. */
export interface Held {
  /** Closes it for good. What is being opened is closed as soon as it is open. */
  close(): void;
}

export interface HoldOptions {
  open(signal: AbortSignal): Promise<Duplex>;
  /** Serves a stream until it has ended; resolves with the reason if there is one. */
  serve(stream: Duplex): Promise<unknown>;
  /** Called once for each outage: when several streams in a row did not hold. */
  readonly onOutage: (cause: unknown) => void;
}

/** Opens a stream, and opens it again whenever it ends, with growing pauses while none holds. */
export function hold({ open, serve, onOutage }: HoldOptions): Held {
  const { reopen, goodMs } = channelLimits;
  const closing = new AbortController();
  const { signal } = closing;
  let current: Duplex | null = null;

  async function once(): Promise<unknown> {
    try {
      current = await open(signal);
      if (signal.aborted) current.destroy();
      return await serve(current);
    } catch (error) {
      return error;
    }
  }

  async function run(): Promise<void> {
    let failures = 0;
    let pauseMs: number = reopen.firstMs;
    while (!signal.aborted) {
      const openedAt = performance.now();
      const cause = await once();
      if (performance.now() - openedAt >= goodMs) {
        failures = 0;
        pauseMs = reopen.firstMs;
      }
      failures += 1;
      if (failures === outageAfter && !signal.aborted) onOutage(cause);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * reopen.factor, reopen.maxMs);
    }
  }

  void run();
  return {
    close() {
      closing.abort();
      current?.destroy();
    },
  };
}

/** The number of streams in a row that do not hold, after which the channel counts as broken. */
const outageAfter = 3;
