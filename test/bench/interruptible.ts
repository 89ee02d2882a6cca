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
