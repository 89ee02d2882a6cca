import type { Config } from '../../../infra/config.ts';

/**
 * A process of the stack, as workers/{control,host,trainer,gateway,policy}.ts export it: it drains and resolves once
 * the signal aborts.
 */
export type RunPart = (config: Config, signal: AbortSignal) => Promise<void>;

/** Time after which a part that drains exits anyway; by then the supervisor has exited or killed the part. */
const lastResortMs = 30_000;

/**
 * Runs one process of the stack until SIGTERM, Ctrl-C or, if it is tethered, the end of its stdin, by which it notices
 * that its supervisor was killed. A second request ends it at once.
 */
export async function runPart(run: RunPart, config: Config, tethered: boolean): Promise<void> {
  const ending = new AbortController();
  const end = (): void => {
    if (ending.signal.aborted) process.exit(1);
    ending.abort();
    setTimeout(() => process.exit(1), lastResortMs).unref();
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
