import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  CancellationScope,
  isCancellation,
  log,
  ParentClosePolicy,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { budgetPause } from '../algorithms/budget.ts';
import { addLedgers } from '../algorithms/cost.ts';
import { addFlags, noFlags } from '../algorithms/flags.ts';
import type { Budget } from '../contracts/budget.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { sweepWindowId } from '../contracts/ids.ts';
import { windowReportSignal } from '../contracts/messages.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import { leftOutKinds, type SweepInput, type SweepPlan } from '../contracts/sweep.ts';
import type { SweepSums, SweepWindowReport, SweepWindowRequest } from '../contracts/sweep-state.ts';
import { handleBudget } from '../shared/budget.ts';
import { cancelByName, cancelUntilEnded } from '../shared/cancel-again.ts';
import { handlePauseSignals } from '../shared/pause.ts';
import type { sweepWindow } from '../sweep-window.ts';
import { partOfWindow, reasonOfWindows } from './budget.ts';
import type { SweepFigures, SweepTally } from './tally.ts';
import { createWindowControls, type Window } from './window-controls.ts';

/**
 * The largest number of rollouts that one workflow has as children. The server allows 2,000 and slows down well before, and
 * a cancel of all children is one workflow task.
 */
const windowSize = 500;

/** The windows of a sweep. */
export interface SweepWindows {
  /** Starts all windows and waits until they have ended. */
  run(): Promise<void>;
  /** Waits for the windows, which were cancelled with the sweep. */
  untilCancelled(): Promise<void>;
  /** Returns the sums over what the windows have reported. */
  figures(): SweepFigures;
  /** Returns the number of records that each window has written. */
  chunks(): readonly number[];
}

export interface SweepWindowsOptions {
  readonly input: SweepInput;
  /** The sweep's own tally, which makes no attempts: its plan, its budget, and the pause that it may be in already. */
  readonly tally: Pick<SweepTally, 'plan' | 'budget' | 'startedAt' | 'pausedBecause'>;
  /** Runs after each report, pause and resume. */
  changed(): void;
}

/** Returns the number of windows that a sweep needs; 1 means that the sweep makes its attempts itself. */
export const windowsNeeded = ({ concurrency, attempts }: SweepInput, { tasks }: SweepPlan): number =>
  Math.max(1, Math.ceil(Math.min(concurrency, tasks * attempts) / windowSize));

/** Creates the windows of a sweep, which handle its signals from now on. */
export function createSweepWindows(options: SweepWindowsOptions): SweepWindows {
  const { input, tally, changed } = options;
  const { plan } = tally;
  const { workflowId: sweep, firstExecutionRunId } = workflowInfo();
  const windows = windowsNeeded(input, plan);
  const reports = createReports(options, windows);
  const { figures, chunks } = reports;
  const running = new Map<number, Window>();
  const partOf = (window: number): Budget => partOfWindow(tally.budget, window, windows);
  const controls = createWindowControls({ tally, running, partOf });

  const pause = (reason: string): void => {
    tally.pausedBecause = reason;
    controls.pause();
    changed();
  };
  const resume = (): void => {
    const why = reasonOfWindows(sweep, figures());
    tally.pausedBecause = why;
    if (why === null) controls.resume();
    // The windows run if the budget was lowered.
    else controls.pause();
    changed();
  };
  const arrive = (report: SweepWindowReport): void => {
    // A window of an earlier sweep of this name, which is being cancelled.
    if (report.sweepKey !== firstExecutionRunId) return;
    const why = reports.take(report, controls.resumes);
    if (why !== null && tally.pausedBecause === null) pause(why);
    else changed();
  };
  handleSignals(tally, { pause, resume, arrive });
  // A pause by hand stays, and its resume tells the windows.
  handleBudget(tally, () => (tally.pausedBecause === null ? resume() : changed()));

  async function run(window: number): Promise<void> {
    try {
      const atStart = controls.atStart();
      const part = { concurrency: Math.ceil(input.concurrency / windows), budget: partOf(window) };
      const handle = await startWindow({ ...input, ...part }, { plan, window, windows, ...atStart });
      running.set(window, handle);
      controls.catchUp(handle, window, atStart);
      await handle.result();
    } catch (error) {
      // One that was cancelled by hand ends early, like one that was terminated.
      if (isCancellation(error) && CancellationScope.current().consideredCancelled) throw error;
      // It exists since the sweep was reset, and reports to this execution as to the one before. Nothing would wait for its end.
      if (error instanceof WorkflowExecutionAlreadyStartedError)
        await cancelByName([sweepWindowId(sweep, firstExecutionRunId, window)]);
      reports.endEarly(window, rootMessage(error));
    } finally {
      running.delete(window);
    }
  }

  return {
    run: async () => void (await Promise.all(Array.from({ length: windows }, (_, window) => run(window)))),
    untilCancelled: () => cancelUntilEnded(() => Array.from(running.values(), ({ workflowId }) => workflowId)),
    figures,
    chunks,
  };
}

/** Keeps the last report of each window, and sums them up. */
function createReports({ input, tally }: SweepWindowsOptions, windows: number) {
  const { workflowId: sweep } = workflowInfo();
  const reports = new Map<number, SweepWindowReport>();
  let broken: string | null = null;

  function figures(): SweepFigures {
    const summed = sumReports(input, tally.plan, [...reports.values()]);
    const { pausedBecause, budget, startedAt } = tally;
    return { ...summed, pausedBecause, budget, startedAt, endedEarly: broken ?? summed.endedEarly };
  }

  return {
    /** Takes a report and returns why the sweep must pause, or null. `resumes`: how often the sweep was resumed. */
    take(report: SweepWindowReport, resumes: number): string | null {
      const before = reports.get(report.window);
      // Its successor overtook it, since signals have no order.
      if (before !== undefined && isOlder(report, before)) return null;
      reports.set(report.window, report);
      const { pausedBecause: reason } = report;
      const isNews = report.resumes >= resumes && isNewPause(report, before);
      // A window that pauses itself pauses the others, since they share its cause.
      const own = isNews ? reason : null;
      const usedUp = own?.startsWith(budgetPause) === true;
      return own !== null && !usedUp ? own : reasonOfWindows(sweep, figures(), usedUp);
    },
    endEarly(window: number, cause: string): void {
      log.warn('a window of the sweep ended early; rollouts that it did not report are not counted', { window, cause });
      broken ??= `window ${window} of the sweep ended early, and rollouts that it did not report are not counted: ${cause}`;
    },
    figures,
    chunks: () => Array.from({ length: windows }, (_, window) => reports.get(window)?.chunks ?? 0),
  };
}

const endedIn = ({ sums }: SweepWindowReport): number =>
  Object.values(sums.outcomes).reduce((total, count) => total + count, 0);

/** Whether a report was sent before another one of the same window: what they count never falls. */
const isOlder = (report: SweepWindowReport, other: SweepWindowReport): boolean =>
  report.chunks < other.chunks || endedIn(report) < endedIn(other);

/** Whether a window paused, or was resumed and paused again, since its report before. */
function isNewPause({ pausedBecause, resumes }: SweepWindowReport, before: SweepWindowReport | undefined): boolean {
  if (pausedBecause !== before?.pausedBecause) return true;
  return pausedBecause !== null && resumes > before.resumes;
}

interface Handlers {
  pause(reason: string): void;
  resume(): void;
  arrive(report: SweepWindowReport): void;
}

function handleSignals(tally: SweepWindowsOptions['tally'], { pause, resume, arrive }: Handlers): void {
  handlePauseSignals(tally, { what: 'rollout', pause, resume });
  setHandler(windowReportSignal, arrive, { description: 'sent by the windows of this sweep, not by hand' });
}

/**
 * The time of a workflow task of a window. A replay takes seconds, since a window has hundreds of children, and many windows may
 * be replayed at once, in one thread, when the agents of a large sweep end together. One that is late is replayed again from the
 * start: with the ten seconds that are usual, twenty windows took the worker's whole time and got nowhere.
 */
const replayTime = '1m';

function startWindow(
  input: SweepInput,
  window: Pick<SweepWindowRequest, 'plan' | 'window' | 'windows' | 'pausedBecause' | 'resumes' | 'control'>,
): Promise<Window> {
  const { workflowId: sweep, firstExecutionRunId: sweepKey } = workflowInfo();
  return startChild<typeof sweepWindow>('sweepWindow', {
    workflowId: sweepWindowId(sweep, sweepKey, window.window),
    args: [{ sweep, sweepKey, input, ...window }],
    // If the sweep is terminated, its windows cancel their rollouts.
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    workflowTaskTimeout: replayTime,
    staticSummary: `window ${window.window + 1} of ${window.windows}: ${input.concurrency} rollouts at once`,
  });
}

type Summed = Omit<SweepFigures, 'pausedBecause' | 'budget' | 'startedAt'>;

function sumReports(input: SweepInput, plan: SweepPlan, reports: readonly SweepWindowReport[]): Summed {
  const { tasks, upstream } = plan;
  const sums = addSums(reports.map((report) => report.sums));
  const version = plan.policyVersion ?? reports.find(({ policyVersion }) => policyVersion !== null)?.policyVersion;
  return {
    tasks,
    planned: tasks * input.attempts,
    ended: Object.values(sums.outcomes).reduce((total, count) => total + count, 0),
    inFlight: { size: reports.reduce((total, { inFlight }) => total + inFlight, 0) },
    sums,
    policy: plan.policy,
    pin: { policyVersion: version ?? null, ...(upstream !== undefined && { upstream }) },
    endedEarly: reports.find(({ endedEarly }) => endedEarly !== null)?.endedEarly ?? null,
  };
}

function addSums(all: readonly SweepSums[]): SweepSums {
  const total = (of: (sums: SweepSums) => number): number => all.reduce((sum, one) => sum + of(one), 0);
  const count = <Kind extends string>(kinds: readonly Kind[], of: (sums: SweepSums) => Record<Kind, number>) => {
    const counts = zeroCount(kinds);
    for (const kind of kinds) counts[kind] = total((sums) => of(sums)[kind]);
    return counts;
  };
  return {
    outcomes: count(outcomes, (sums) => sums.outcomes),
    leftOut: count(leftOutKinds, (sums) => sums.leftOut),
    retried: total(({ retried }) => retried),
    counted: total(({ counted }) => counted),
    passed: total(({ passed }) => passed),
    rewards: total(({ rewards }) => rewards),
    flags: all.map(({ flags }) => flags).reduce(addFlags, noFlags),
    cost: all.map(({ cost }) => cost).reduce(addLedgers, {}),
  };
}
