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
import { parseInput } from './contracts/input.ts';
import { sweepStatusQuery } from './contracts/messages.ts';
import {
  type SweepInput,
  type SweepRequest,
  type SweepResult,
  type SweepState,
  sweepInput,
} from './contracts/sweep.ts';
import { rootMessage } from './run/root-message.ts';
import { handlePause } from './sweep/pause.ts';
import { recordRows, recordWhole } from './sweep/record-rows.ts';
import { createSweepRollouts, type SweepRollouts } from './sweep/rollouts.ts';
import { SweepBooks } from './sweep/tally.ts';
import { untilCancelled } from './sweep/until-cancelled.ts';
import { createSweepView, type SweepView } from './sweep/view.ts';

/** Starts of one workflow task: more of them would make it too large for the server. */
const startsAtOnce = 50;

/** A sweep under its input, as its parts need it. */
interface Sweep {
  readonly input: SweepInput;
  readonly books: SweepBooks;
  readonly view: SweepView;
  readonly rollouts: SweepRollouts;
}

/**
 * Evaluates one policy version: so many attempts at each task, a bounded number at once. It trains nothing. What of its
 * rollouts has ended is recorded as it goes; continue-as-new carries only where it stands, and leaves them running.
 */
export async function evaluationSweep(request: SweepRequest, carried?: SweepState): Promise<SweepResult> {
  const input = parseInput('evaluationSweep', sweepInput, request);
  const books = new SweepBooks(input, carried ?? null, Date.now());
  const view = createSweepView(input, books);
  const sweep: Sweep = { input, books, view, rollouts: createSweepRollouts(input, books) };
  handleMessages(sweep);
  try {
    if (carried === undefined) {
      view.show();
      books.begin(await batches.planSweep({ input }));
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

function handleMessages({ books, view }: Sweep): void {
  setHandler(sweepStatusQuery, () => view.status(), { description: 'attempts ended, counted and left out' });
  handlePause(books, 'rollout');
}

async function untilDone(sweep: Sweep): Promise<void> {
  const { books, view, rollouts } = sweep;
  const asking = createAsking(rollouts);
  for (;;) {
    const seen = books.changes;
    await record(sweep, books.done ? 1 : recordRows);
    if (books.done && books.unsaved.count === 0) return;
    if (workflowInfo().continueAsNewSuggested) await carryOn(sweep);
    books.pausedBecause ??= books.watch.reasonToPause('rollouts');
    view.show();
    if (books.pausedBecause === null) await rollouts.start(books.take(startsAtOnce));
    const changed = (): boolean => books.changes !== seen;
    if (changed() || (books.pausedBecause === null && books.anyToStart)) continue;
    if (books.adopted.size === 0) await condition(changed);
    else if (!(await condition(changed, asking.inMs()))) await asking.ask();
  }
}

/** Rollouts of an earlier execution report to nobody: they are asked for, at first soon, then more and more rarely. */
function createAsking({ collectAdopted }: SweepRollouts) {
  let waitMs = adoptedFirstMs;
  let dueAt = Date.now() + waitMs;
  return {
    inMs: () => Math.max(1, dueAt - Date.now()),
    async ask() {
      await collectAdopted();
      waitMs = Math.min(waitMs * 2, adoptedMostMs);
      dueAt = Date.now() + waitMs;
    },
  };
}

/** What can't be recorded is kept, and pauses the sweep. */
async function record({ books }: Sweep, atLeast: number): Promise<void> {
  const { firstExecutionRunId: sweepKey } = workflowInfo();
  const problem = await recordWhole(books.unsaved, atLeast, (chunk, rows) =>
    control.recordSweepRows({ sweepKey, chunk, rows }),
  );
  books.pausedBecause ??= problem;
}

/** With rows that can't be recorded it goes on here. */
async function carryOn(sweep: Sweep): Promise<void> {
  await record(sweep, 1);
  await condition(allHandlersFinished);
  if (sweep.books.unsaved.count > 0) return;
  // One that ends in this very moment is still in flight for the next execution, which asks for it.
  await continueAsNew<typeof evaluationSweep>(sweep.input, sweep.books.state());
}

async function summarise({ input, books }: Sweep): Promise<SweepResult> {
  const { workflowId, firstExecutionRunId: sweepKey } = workflowInfo();
  const { plan, startedAt, endedEarly } = books;
  const { chunks } = books.unsaved;
  const times = { startedAt, endedAt: Date.now() };
  return batches.summariseSweep({ sweep: workflowId, sweepKey, input, plan, chunks, endedEarly, ...times });
}

/** Leaves nothing behind: every rollout in flight is cancelled and waited for; what had ended is summarised. */
async function cancelEverything(sweep: Sweep): Promise<void> {
  const { books, view, rollouts } = sweep;
  view.phase = 'cancelling';
  books.cancelling = true;
  books.endedEarly ??= 'cancelled';
  view.show();
  await untilCancelled(books, rollouts.collectAdopted);
  if (books.begun) {
    await record(sweep, 1);
    await summarise(sweep).catch((error) =>
      log.warn('the cancelled sweep has no report', { error: rootMessage(error) }),
    );
  }
  view.phase = 'cancelled';
  view.show();
}
