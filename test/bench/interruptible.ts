import { onInterrupt } from '../../workers/cli/follow/interrupt.ts';
import { describeError, exitCodeOf } from '../../workers/cli/text/errors.ts';
import { note } from '../../workers/cli/text/output.ts';

/** Runs a measurement that Ctrl-C ends; `cleanUp` says what then happens. Prints a failure, and sets the exit code. */
export async function interruptible(cleanUp: string, measure: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { signal, release } = onInterrupt(cleanUp);
  try {
    await measure(signal);
  } catch (error) {
    const cause = signal.aborted ? signal.reason : error;
    note(describeError(cause, false));
    process.exitCode = exitCodeOf(cause);
  } finally {
    release();
  }
}

/** Waits for work that knows no signal. After an abort its result no longer counts, and what it uses may be ended. */
export async function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = new Promise<never>((_, reject) => {
    const end = (): void => reject(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
  return Promise.race([work, aborted]);
}
