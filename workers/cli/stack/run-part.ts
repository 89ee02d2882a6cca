import type { Config } from '../../../infra/config.ts';

/** What workers/{control,host,trainer,gateway,policy}.ts export: resolves after a clean drain once the signal aborts. */
export type RunPart = (config: Config, signal: AbortSignal) => Promise<void>;

/** Longer than any part's own drain; the supervisor is gone or has lost patience by then. */
const LAST_RESORT_MS = 30_000;

/**
 * Runs one process of the stack until it is asked to end: by SIGTERM, Ctrl-C, or, when tethered, by the end of its stdin,
 * which is how it notices that its supervisor was killed. A second request ends it at once.
 */
export async function runPart(run: RunPart, config: Config, tethered: boolean): Promise<void> {
  const ending = new AbortController();
  const end = (): void => {
    if (ending.signal.aborted) process.exit(1);
    ending.abort();
    setTimeout(() => process.exit(1), LAST_RESORT_MS).unref();
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  if (tethered) {
    process.stdin.on('end', end);
    process.stdin.on('error', end);
    process.stdin.resume();
  }
  try {
    await run(config, ending.signal);
  } finally {
    process.stdin.pause();
    process.off('SIGTERM', end);
    process.off('SIGINT', end);
  }
}
