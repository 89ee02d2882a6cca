import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ServerTls } from '../infra/server-tls.ts';
import { errorMessage } from '../workflows/contracts/error-message.ts';

const lookEveryMs = 10_000;

interface Watch {
  /** Reads certificate and key from their files. Throws if they do not belong together. */
  readonly read: () => Promise<ServerTls>;
  /** The pair that is served at first. */
  readonly served: ServerTls;
  /** Serves another pair to new connections. */
  readonly serve: (tls: ServerTls) => void;
  readonly log: { info(message: string): void; warn(message: string): void };
  readonly everyMs?: number;
}

/**
 * Serves a renewed certificate once its files hold it, until the signal aborts. Connections that exist keep the one that they
 * began with. While the files hold no pair that can be served, the last one stays.
 */
export async function watchListenTls(
  { read, served, serve, log, everyMs = lookEveryMs }: Watch,
  signal: AbortSignal,
): Promise<void> {
  let current = served;
  let refusal: string | null = null;
  for (;;) {
    await sleep(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const found = await read();
      refusal = null;
      if (isDeepStrictEqual(found, current)) continue;
      serve(found);
      current = found;
      log.info('new connections get the renewed certificate');
    } catch (error) {
      // A file may be half written, or the certificate is there and its key follows.
      const reason = errorMessage(error);
      if (reason !== refusal) {
        log.warn(`the renewed certificate cannot be served yet, and the one in use is kept: ${reason}`);
      }
      refusal = reason;
    }
  }
}
