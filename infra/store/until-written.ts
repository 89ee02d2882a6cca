import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** Writers of one object that get in each other's way: each time, one of them succeeds. */
const mostTries = 100;

/**
 * Calls `write` until it returns a result. It returns undefined if another process has changed the object since it was read.
 * Throws TemperFailure StoreUnavailable after a hundred calls, as of a store whose versions match no condition.
 */
export async function untilWritten<Result>(object: string, write: () => Promise<Result | undefined>): Promise<Result> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const result = await write();
    if (result !== undefined) return result;
  }
  throw new TemperFailure(
    'StoreUnavailable',
    `${object} was changed by others before each of ${mostTries} writes, or its version matches no condition; run temper doctor`,
  );
}
