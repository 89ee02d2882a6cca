import { Interrupted } from '../text/errors.ts';
import { note } from '../text/output.ts';

export interface Interrupt {
  /** Aborts at the first Ctrl-C, SIGTERM or when the terminal closes. */
  readonly signal: AbortSignal;
  readonly first: Promise<void>;
  /** Says what stays behind when the second Ctrl-C leaves at once. */
  remains(describe: () => string): void;
  release(): void;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The first Ctrl-C asks for a clean end, the second one leaves at once. */
export function onInterrupt(announcement: string): Interrupt {
  const abort = new AbortController();
  let describe = (): string => '';
  const interrupted = (): void => {
    if (abort.signal.aborted) {
      note(`leaving at once. ${describe()}`.trimEnd());
      process.exit(130);
    }
    note(`${announcement} (Ctrl-C again leaves at once)`);
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
