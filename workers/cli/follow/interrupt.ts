import { Interrupted } from '../text/errors.ts';
import { note } from '../text/output.ts';

/** A command's reaction to Ctrl-C. */
export interface Interrupt {
  /** Aborts at the first Ctrl-C, at SIGTERM, or when the terminal closes. */
  readonly signal: AbortSignal;
  /** Resolves when the signal aborts. */
  readonly first: Promise<void>;
  /** Sets the text that a second Ctrl-C prints before it exits: what it leaves behind. */
  remains(describe: () => string): void;
  /** Restores the default reaction. */
  release(): void;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Signals within this time are one request: a terminal sends a Ctrl-C to npm, too, which sends it on (`npx temper`). */
const oneRequestMs = 1_000;

/**
 * Makes the first Ctrl-C request a clean end, with an announcement, and the second one exit at once. A function returns
 * the announcement for what the command does at that moment.
 */
export function onInterrupt(announcement: string | (() => string)): Interrupt {
  const abort = new AbortController();
  let describe = (): string => '';
  let firstAtMs = 0;
  const interrupted = (): void => {
    if (abort.signal.aborted) {
      if (performance.now() - firstAtMs < oneRequestMs) return;
      note(`exiting now. ${describe()}`.trimEnd());
      process.exit(130);
    }
    const said = typeof announcement === 'string' ? announcement : announcement();
    note(`${said} (press Ctrl-C again to exit at once)`);
    firstAtMs = performance.now();
    abort.abort(new Interrupted('interrupted'));
  };
  const first = new Promise<void>((resolve) => abort.signal.addEventListener('abort', () => resolve(), { once: true }));
  for (const name of signals) process.on(name, interrupted);
  return {
    signal: abort.signal,
    first,
    remains(next) {
      describe = next;
    },
    release() {
      for (const name of signals) process.off(name, interrupted);
    },
  };
}
