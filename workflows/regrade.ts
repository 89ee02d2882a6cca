import {
  allHandlersFinished,
  CancellationScope,
  ContinueAsNew,
  condition,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { batches, control } from './activities.ts';
import { rootMessage } from './contracts/error-message.ts';
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
import { createRegradeTally, type RegradeTally } from './regrade/tally.ts';
import { createRegradeView, type RegradeView } from './regrade/view.ts';
import { continueInNewest, shouldContinue } from './shared/continue.ts';
import { handlePause } from './shared/pause.ts';
import { pauseAtFailure } from './shared/pause-at-failure.ts';
import { rowsPerRecord } from './shared/unsaved-rows.ts';

/** A regrade's input with the parts that work on it. */
interface Regrade {
  readonly input: RegradeInput;
  readonly tally: RegradeTally;
  readonly view: RegradeView;
}

/**
 * Grades rollouts again that have ended, by their stored diffs: after a fix of the grader, or to find flaky tests. It changes
 * no rollout and runs no agent. Before it continues as new it waits for the evaluations in flight, which are short.
 */
export async function regrade(request: RegradeRequest, carried?: RegradeCarried): Promise<RegradeResult> {
  const input = parseInput('regrade', regradeInput, request);
  const tally = createRegradeTally(input, carried ?? null, Date.now());
  const view = createRegradeView(input, tally);
  const all: Regrade = { input, tally, view };
  setHandler(regradeStatusQuery, () => view.status(), { description: 'rollouts graded again, changed and left out' });
  const changed = (): void => {
    tally.changes += 1;
  };
  handlePause(tally, { what: 'evaluation', changed });
  try {
    if (carried === undefined) {
      view.show();
      const { workflowId, firstExecutionRunId: regradeKey } = workflowInfo();
      const { startedAt } = tally;
      tally.begin((await batches.planRegrade({ regrade: workflowId, regradeKey, startedAt, input })).rollouts);
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
  const result = await pauseAtFailure({ tally, work: () => summarise(all), show: view.show });
  view.phase = 'done';
  view.show();
  return result;
}

async function untilDone(all: Regrade): Promise<void> {
  const { tally, view } = all;
  for (;;) {
    const seen = tally.changes;
    await record(all, tally.done ? 1 : rowsPerRecord);
    if (tally.done && tally.unsaved.count === 0) return;
    const full = shouldContinue();
    if (full && tally.inFlight.size === 0) await carryOn(all);
    tally.pausedBecause ??= tally.watch.reasonToPause('evaluations');
    view.show();
    if (!full && tally.pausedBecause === null) for (const number of tally.take()) void gradeOne(all, number);
    await condition(() => tally.changes !== seen);
  }
}

/** Grades one rollout. If it can't be looked up it is kept for later, and the regrade pauses. */
async function gradeOne({ input, tally }: Regrade, number: number): Promise<void> {
  let seconds = 0;
  const spent = (more: number): void => {
    seconds += more;
  };
  try {
    const row = await gradeAgain(input, number, spent);
    tally.settle(number, row, seconds);
  } catch (error) {
    if (!isCancellation(error)) {
      tally.pausedBecause ??= `a rollout could not be looked up: ${rootMessage(error)}; fix the cause, then resume`;
    }
    tally.notGraded(number, seconds);
  }
}

/** Records rows. Those that can't be recorded are kept, and pause the regrade. */
async function record({ tally }: Regrade, atLeast: number): Promise<void> {
  const { workflowId: regrade, firstExecutionRunId: regradeKey } = workflowInfo();
  const problem = await tally.unsaved.record(atLeast, (chunk, rows) =>
    control.recordRegrades({ regrade, regradeKey, chunk, rows }),
  );
  tally.pausedBecause ??= problem;
}

/** Continues as new, unless rows can't be recorded: then the regrade continues in this execution. */
async function carryOn(all: Regrade): Promise<void> {
  await record(all, 1);
  await condition(allHandlersFinished);
  if (all.tally.unsaved.count > 0) return;
  await continueInNewest<typeof regrade>(all.input, all.tally.carried());
}

/** Waits until the cancelled evaluations have removed their sandboxes, and summarises those that had ended. */
async function windUp(all: Regrade): Promise<void> {
  const { tally, view } = all;
  view.phase = 'cancelling';
  tally.endedEarly = 'cancelled';
  view.show();
  await condition(() => tally.inFlight.size === 0);
  if (tally.begun) {
    await record(all, 1);
    await summarise(all).catch((error) =>
      log.warn('the cancelled regrade has no report', { error: rootMessage(error) }),
    );
  }
  view.phase = 'cancelled';
  view.show();
}

async function summarise({ input, tally, view }: Regrade): Promise<RegradeResult> {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  const { rollouts, states, meanBefore, meanAfter, endedEarly, cost } = view.status();
  return batches.summariseRegrade({
    regrade: workflowId,
    regradeKey: firstExecutionRunId,
    input,
    chunks: tally.unsaved.chunks,
    result: { rollouts, states, meanBefore, meanAfter, endedEarly, cost },
    startedAt: tally.startedAt,
    endedAt: Date.now(),
  });
}
