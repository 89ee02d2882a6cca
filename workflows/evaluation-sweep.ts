import {
  allHandlersFinished,
  CancellationScope,
  ContinueAsNew,
  condition,
  continueAsNew,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { batches, control } from './activities.ts';
import { adoptedFirstMs, adoptedMostMs } from './activity-options.ts';
import { rootMessage } from './contracts/error-message.ts';
import { parseInput } from './contracts/input.ts';
import { sweepStatusQuery } from './contracts/messages.ts';
import {
  type SweepInput,
  type SweepRequest,
  type SweepResult,
  type SweepState,
  sweepInput,
} from './contracts/sweep.ts';
import { handlePause } from './shared/pause.ts';
import { rowsPerRecord } from './shared/unsaved-rows.ts';
import { createSweepRollouts, type SweepRollouts } from './sweep/rollouts.ts';
import { createSweepTally, type SweepTally } from './sweep/tally.ts';
import { createSweepView, type SweepView } from './sweep/view.ts';

/** The number of starts in one workflow task: more would make it too large for the server. */
const startsAtOnce = 50;

/** A sweep's input with the parts that work on it. */
interface Sweep {
  readonly input: SweepInput;
  readonly tally: SweepTally;
  readonly view: SweepView;
  readonly rollouts: SweepRollouts;
}

/**
 * Evaluates one policy version with a number of attempts at each task, of which a bounded number runs at once. It trains
 * nothing. Rollouts are recorded as they end; continue-as-new carries only the sweep's state, and leaves rollouts running.
 */
export async function evaluationSweep(request: SweepRequest, carried?: SweepState): Promise<SweepResult> {
  const input = parseInput('evaluationSweep', sweepInput, request);
  const tally = createSweepTally(input, carried ?? null, Date.now());
  const view = createSweepView(input, tally);
  const sweep: Sweep = { input, tally, view, rollouts: createSweepRollouts(input, tally) };
  setHandler(sweepStatusQuery, () => view.status(), { description: 'attempts ended, counted and left out' });
  handlePause(tally, 'rollout');
  try {
    if (carried === undefined) {
      view.show();
      tally.begin(await batches.planSweep({ input }));
    }
    view.phase = 'running';
    await untilDone(sweep);
  } catch (error) {
    if (!CancellationScope.current().consideredCancelled) {
      if (!(error instanceof ContinueAsNew)) view.failed(error);
      throw error;
    }
    await CancellationScope.nonCancellable(() => cancelEverything(sweep));
    throw error;
  }
  const result = await summarise(sweep);
  view.finished(result);
  return result;
}

async function untilDone(sweep: Sweep): Promise<void> {
  const { tally, view, rollouts } = sweep;
  const adopted = createAdoptedPolling(rollouts);
  for (;;) {
    const seen = tally.changes;
    await record(sweep, tally.done ? 1 : rowsPerRecord);
    if (tally.done && tally.unsaved.count === 0) return;
    if (workflowInfo().continueAsNewSuggested) await carryOn(sweep);
    tally.pausedBecause ??= tally.watch.reasonToPause('rollouts');
    view.show();
    if (tally.pausedBecause === null) await rollouts.start(tally.take(startsAtOnce));
    const changed = (): boolean => tally.changes !== seen;
    if (changed() || (tally.pausedBecause === null && tally.canStart)) continue;
    if (tally.adopted.size === 0) await condition(changed);
    else if (!(await condition(changed, adopted.dueInMs()))) await adopted.poll();
  }
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
async function record({ tally }: Sweep, atLeast: number): Promise<void> {
  const { firstExecutionRunId: sweepKey } = workflowInfo();
  const problem = await tally.unsaved.record(atLeast, (chunk, rows) =>
    control.recordSweepRows({ sweepKey, chunk, rows }),
  );
  tally.pausedBecause ??= problem;
}

/** Continues as new, unless rows can't be recorded: then the sweep continues in this execution. */
async function carryOn(sweep: Sweep): Promise<void> {
  await record(sweep, 1);
  await condition(allHandlersFinished);
  if (sweep.tally.unsaved.count > 0) return;
  // A rollout that ends at this moment is still in flight for the next execution, which asks for it.
  await continueAsNew<typeof evaluationSweep>(sweep.input, sweep.tally.state());
}

async function summarise({ input, tally }: Sweep): Promise<SweepResult> {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  return batches.summariseSweep({
    sweep: workflowId,
    sweepKey: firstExecutionRunId,
    input,
    plan: tally.plan,
    chunks: tally.unsaved.chunks,
    endedEarly: tally.endedEarly,
    startedAt: tally.startedAt,
    endedAt: Date.now(),
  });
}

/** Cancels every rollout in flight, waits for their ends, and summarises those that had ended. */
async function cancelEverything(sweep: Sweep): Promise<void> {
  const { tally, view, rollouts } = sweep;
  view.phase = 'cancelling';
  tally.cancelling = true;
  tally.endedEarly ??= 'cancelled';
  view.show();
  await rollouts.untilCancelled();
  if (tally.begun) {
    await record(sweep, 1);
    await summarise(sweep).catch((error) =>
      log.warn('the cancelled sweep has no report', { error: rootMessage(error) }),
    );
  }
  view.phase = 'cancelled';
  view.show();
}
