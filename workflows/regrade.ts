import {
  allHandlersFinished,
  CancellationScope,
  ContinueAsNew,
  condition,
  continueAsNew,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { batches, control } from './activities.ts';
import { parseInput } from './contracts/input.ts';
import { regradeStatusQuery } from './contracts/messages.ts';
import {
  type RegradeCarried,
  type RegradeInput,
  type RegradeRequest,
  type RegradeResult,
  regradeInput,
} from './contracts/regrade.ts';
import { gradeAgain } from './regrade/grade-again.ts';
import { RegradeBooks } from './regrade/tally.ts';
import { createRegradeView, type RegradeView } from './regrade/view.ts';
import { rootMessage } from './run/root-message.ts';
import { handlePause } from './sweep/pause.ts';
import { recordRows, recordWhole } from './sweep/record-rows.ts';

/** A regrade under its input, as its parts need it. */
interface Regrade {
  readonly input: RegradeInput;
  readonly books: RegradeBooks;
  readonly view: RegradeView;
}

/**
 * Grades rollouts again that have ended, by the diffs in the store: after a fix of the grader, or to find out which tests
 * are flaky. It changes no rollout; no agent runs. Continue-as-new carries only where it stands: evaluations in flight are
 * short beside the rest, so it waits for them.
 */
export async function regrade(request: RegradeRequest, carried?: RegradeCarried): Promise<RegradeResult> {
  const input = parseInput('regrade', regradeInput, request);
  const books = new RegradeBooks(input, carried ?? null, Date.now());
  const view = createRegradeView(input, books);
  const all: Regrade = { input, books, view };
  setHandler(regradeStatusQuery, () => view.status(), { description: 'rollouts graded again, changed and left out' });
  handlePause(books, 'evaluation');
  try {
    if (carried === undefined) {
      view.show();
      const { firstExecutionRunId: regradeKey } = workflowInfo();
      books.begin((await batches.planRegrade({ regradeKey, input })).rollouts);
    }
    view.phase = 'running';
    await untilDone(all);
  } catch (error) {
    if (!CancellationScope.current().consideredCancelled) {
      if (!(error instanceof ContinueAsNew)) view.failed(error);
      throw error;
    }
    await CancellationScope.nonCancellable(() => windUp(all));
    throw error;
  }
  const result = await summarise(all);
  view.phase = 'done';
  view.show();
  return result;
}

async function untilDone(all: Regrade): Promise<void> {
  const { books, view } = all;
  for (;;) {
    const seen = books.changes;
    await record(all, books.done ? 1 : recordRows);
    if (books.done && books.unsaved.count === 0) return;
    const full = workflowInfo().continueAsNewSuggested;
    if (full && books.inFlight.size === 0) await carryOn(all);
    books.pausedBecause ??= books.watch.reasonToPause('evaluations');
    view.show();
    if (!full && books.pausedBecause === null) for (const number of books.take()) void gradeOne(all, number);
    await condition(() => books.changes !== seen);
  }
}

/** What can't be looked up is kept for later, and pauses the regrade. */
async function gradeOne({ input, books }: Regrade, number: number): Promise<void> {
  try {
    books.settle(number, await gradeAgain(input, number));
  } catch (error) {
    if (!isCancellation(error)) {
      books.pausedBecause ??= `a rollout could not be looked up: ${rootMessage(error)}; mend the cause, then resume`;
    }
    books.notGraded(number);
  }
}

/** What can't be recorded is kept, and pauses the regrade. */
async function record({ books }: Regrade, atLeast: number): Promise<void> {
  const { firstExecutionRunId: regradeKey } = workflowInfo();
  const problem = await recordWhole(books.unsaved, atLeast, (chunk, rows) =>
    control.recordRegrades({ regradeKey, chunk, rows }),
  );
  books.pausedBecause ??= problem;
}

/** With rows that can't be recorded it goes on here. */
async function carryOn(all: Regrade): Promise<void> {
  await record(all, 1);
  await condition(allHandlersFinished);
  if (all.books.unsaved.count > 0) return;
  await continueAsNew<typeof regrade>(all.input, all.books.carried());
}

/** The evaluations in flight are being cancelled, and remove their sandboxes; what had ended is summarised. */
async function windUp(all: Regrade): Promise<void> {
  const { books, view } = all;
  view.phase = 'cancelling';
  books.endedEarly = 'cancelled';
  view.show();
  await condition(() => books.inFlight.size === 0);
  if (books.begun) {
    await record(all, 1);
    await summarise(all).catch((error) =>
      log.warn('the cancelled regrade has no report', { error: rootMessage(error) }),
    );
  }
  view.phase = 'cancelled';
  view.show();
}

async function summarise({ input, books, view }: Regrade): Promise<RegradeResult> {
  const { workflowId: regrade, firstExecutionRunId: regradeKey } = workflowInfo();
  const { rollouts, states, meanBefore, meanAfter, endedEarly } = view.status();
  const result = { rollouts, states, meanBefore, meanAfter, endedEarly };
  const times = { startedAt: books.startedAt, endedAt: Date.now() };
  return batches.summariseRegrade({ regrade, regradeKey, input, chunks: books.unsaved.chunks, result, ...times });
}
