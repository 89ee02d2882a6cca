import { workflowInfo } from '@temporalio/workflow';
import { placeOf } from '../algorithms/sweep-row.ts';
import { cancelByName, cancelUntilEnded } from '../cancel-again.ts';
import { sweepRolloutId } from '../contracts/ids.ts';
import type { SweepBooks } from './tally.ts';

/**
 * Waits for the rollouts in flight, which were cancelled with the sweep. Those of an earlier execution are its children no
 * more: they are cancelled by name, and asked for.
 */
export async function untilCancelled(books: SweepBooks, collectAdopted: () => Promise<void>): Promise<void> {
  const { workflowId: sweep, firstExecutionRunId: sweepKey } = workflowInfo();
  const idsOf = (numbers: Iterable<number>): string[] =>
    Array.from(numbers, (number) => {
      const place = placeOf(number, books.inFlight.get(number) ?? 0, books.tasks);
      return sweepRolloutId(sweep, sweepKey, place);
    });

  await cancelByName(idsOf(books.adopted));
  await cancelUntilEnded(() => idsOf(books.inFlight.keys()), collectAdopted);
}
