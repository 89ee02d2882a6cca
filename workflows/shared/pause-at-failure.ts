import { condition, isCancellation } from '@temporalio/workflow';
import { rootMessage } from '../contracts/error-message.ts';
import type { Pausable } from './pause.ts';

interface LastWork<Result> {
  readonly tally: Pick<Pausable, 'pausedBecause'>;
  work(): Promise<Result>;
  /** Shows the pause. */
  show(): void;
}

/** Does the last work of a sweep or a regrade. A failure pauses it until it is resumed, so that what was recorded is not lost. */
export async function pauseAtFailure<Result>({ tally, work, show }: LastWork<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (isCancellation(error)) throw error;
      tally.pausedBecause = `the results could not be summarised: ${rootMessage(error)}; fix the cause, then resume`;
      show();
    }
    await condition(() => tally.pausedBecause === null);
  }
}
