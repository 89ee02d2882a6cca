import { setTimeout as delay } from 'node:timers/promises';
import { NotStarted, wasEndedInside } from '../failure.ts';

/** The pauses between the tries to start a command, in which a busy machine may catch up. */
const pausesMs = [100, 400, 1_000, 2_000, null];

/**
 * Tries to start a command until it starts. Throws the `NotStarted` that says most: one whose sandbox had no room for a command, or
 * the first.
 */
export async function untilStarted<Result>(start: () => Promise<Result>): Promise<Result> {
  let known: NotStarted | undefined;
  for (const pauseMs of pausesMs) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof NotStarted)) throw error;
      if (known === undefined || wasEndedInside(error)) known = error;
      if (pauseMs !== null) await delay(pauseMs);
    }
  }
  throw known;
}
