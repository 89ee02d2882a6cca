import { allHandlersFinished, condition } from '@temporalio/workflow';
import { control } from '../activities.ts';
import { adoptedFirstMs, adoptedMostMs } from '../activity-options.ts';
import { shouldContinue } from '../shared/continue.ts';
import { rowsPerRecord } from '../shared/unsaved-rows.ts';
import { withinBudget } from './budget.ts';
import type { SweepRollouts } from './rollouts.ts';
import type { SweepTally } from './tally.ts';

/** The number of starts in one workflow task: more would make it too large for the server. */
const startsAtOnce = 50;

/** The attempts of a sweep, with the parts that work on them. */
export interface Attempts {
  readonly sweep: string;
  readonly sweepKey: string;
  readonly tally: SweepTally;
  readonly rollouts: SweepRollouts;
  /** Shows the progress. */
  show(): void;
  continueAsNew(): Promise<never>;
}

/** Makes all attempts, of which a bounded number runs at once, and records their rows as they end. */
export async function makeAttempts(attempts: Attempts): Promise<void> {
  const { sweep, tally, rollouts } = attempts;
  const adopted = createAdoptedPolling(rollouts);
  for (;;) {
    const seen = tally.changes;
    await recordRows(attempts, tally.done ? 1 : rowsPerRecord);
    if (tally.done && tally.unsaved.count === 0) return;
    if (shouldContinue()) await carryOn(attempts);
    tally.pausedBecause ??= tally.watch.reasonToPause('rollouts');
    const allowed = tally.pausedBecause === null ? withinBudget(sweep, tally, startsAtOnce) : 0;
    attempts.show();
    if (tally.pausedBecause === null) await rollouts.start(tally.take(allowed));
    const changed = (): boolean => tally.changes !== seen;
    if (changed() || (tally.pausedBecause === null && tally.canStart)) continue;
    if (tally.adopted.size === 0) await condition(changed);
    else if (!(await condition(changed, adopted.dueInMs()))) await adopted.poll();
  }
}

/** Cancels every rollout in flight, waits for their ends, and records those that had ended. */
export async function cancelAttempts(attempts: Attempts): Promise<void> {
  const { tally, rollouts } = attempts;
  tally.cancelling = true;
  tally.endedEarly ??= 'cancelled';
  attempts.show();
  await rollouts.untilCancelled();
  if (tally.begun) await recordRows(attempts, 1);
}

/** Creates the polling for rollouts of an earlier execution, which don't report here: first soon, then at longer intervals. */
function createAdoptedPolling({ collectAdopted }: SweepRollouts) {
  let waitMs = adoptedFirstMs;
  let dueAt = Date.now() + waitMs;
  return {
    dueInMs: () => Math.max(1, dueAt - Date.now()),
    async poll() {
      await collectAdopted();
      waitMs = Math.min(waitMs * 2, adoptedMostMs);
      dueAt = Date.now() + waitMs;
    },
  };
}

/** Records rows. Those that can't be recorded are kept, and pause the sweep. */
async function recordRows({ tally, sweepKey }: Attempts, atLeast: number): Promise<void> {
  const problem = await tally.unsaved.record(atLeast, (chunk, rows) =>
    control.recordSweepRows({ sweepKey, chunk, rows }),
  );
  tally.pausedBecause ??= problem;
}

/** Continues as new, unless rows can't be recorded: then the attempts continue in this execution. */
async function carryOn(attempts: Attempts): Promise<void> {
  await recordRows(attempts, 1);
  await condition(allHandlersFinished);
  if (attempts.tally.unsaved.count > 0) return;
  // A rollout that ends at this moment is still in flight for the next execution, which asks for it.
  await attempts.continueAsNew();
}
