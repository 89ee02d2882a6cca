import { ActivityFailure, ApplicationFailure, sleep } from '@temporalio/workflow';
import { offeredElsewhere } from '../contracts/offered-elsewhere.ts';

const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/**
 * Does a stage on a host that has its kind of sandbox, where hosts with different kinds take from one queue: a host without it
 * declines the stage, which is then asked for again.
 */
export async function whereOffered<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isDeclined(error)) throw error;
    }
    await sleep(pauseMs);
  }
}

const isDeclined = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.cause instanceof ApplicationFailure &&
  error.cause.type === offeredElsewhere;
