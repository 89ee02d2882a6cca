import {
  type ChildWorkflowHandle,
  isCancellation,
  log,
  ParentClosePolicy,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { addLedgers, unknownLedger } from '../algorithms/cost.ts';
import { addFlags, noFlags } from '../algorithms/flags.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { sweepWindowId } from '../contracts/ids.ts';
import { pauseSignal, resumeSignal, windowReportSignal } from '../contracts/messages.ts';
import { outcomes, zeroCount } from '../contracts/outcome.ts';
import { leftOutKinds, type SweepInput, type SweepPlan } from '../contracts/sweep.ts';
import type { SweepSums, SweepWindowReport, SweepWindowRequest } from '../contracts/sweep-state.ts';
import { cancelUntilEnded } from '../shared/cancel-again.ts';
import type { sweepWindow } from '../sweep-window.ts';
import type { SweepFigures } from './view.ts';

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
  readonly plan: SweepPlan;
  /** Set if the sweep is paused already. */
  readonly pausedBecause: string | null;
  /** Runs after each report, pause and resume. */
  changed(): void;
}

/** Returns the number of windows that a sweep needs; 1 means that the sweep makes its attempts itself. */
export const windowsNeeded = ({ concurrency, attempts }: SweepInput, { tasks }: SweepPlan): number =>
  Math.max(1, Math.ceil(Math.min(concurrency, tasks * attempts) / windowSize));

/** Creates the windows of a sweep, which handle its signals from now on. */
export function createSweepWindows(options: SweepWindowsOptions): SweepWindows {
  const { input, plan, changed } = options;
  const windows = windowsNeeded(input, plan);
  const reports = new Map<number, SweepWindowReport>();
  const running = new Map<number, Window>();
  let { pausedBecause } = options;
  /** The number of resumes. A window that paused before it knew of the last one has resumed by now, or is about to. */
  let resumes = 0;
  let broken: string | null = null;

  // A window that has just ended can't be signalled, and need not be.
  const toEach = (deliver: (window: Window) => Promise<void>): void => {
    for (const window of running.values()) void deliver(window).catch(() => undefined);
  };
  const pause = (reason: string): void => {
    pausedBecause = reason;
    toEach((window) => window.signal(pauseSignal, reason));
    changed();
  };
  const resume = (): void => {
    pausedBecause = null;
    resumes += 1;
    toEach((window) => window.signal(resumeSignal, undefined, resumes));
    changed();
  };
  const arrive = (report: SweepWindowReport): void => {
    const before = reports.get(report.window);
    reports.set(report.window, report);
    const { pausedBecause: reason } = report;
    const isNews = reason !== before?.pausedBecause && (report.resumes ?? 0) >= resumes;
    // A window that pauses itself pauses the others, since they share its cause.
    if (reason !== null && isNews && pausedBecause === null) pause(reason);
    else changed();
  };
  handleSignals({ pause, resume, arrive });

  async function run(window: number): Promise<void> {
    try {
      const atStart = { pausedBecause, resumes };
      const handle = await startWindow(input, { plan, window, windows, ...atStart });
      running.set(window, handle);
      // What was sent to the windows meanwhile has not reached this one.
      if (resumes > atStart.resumes) await handle.signal(resumeSignal, undefined, resumes);
      if (pausedBecause !== null && pausedBecause !== atStart.pausedBecause)
        await handle.signal(pauseSignal, pausedBecause);
      await handle.result();
    } catch (error) {
      if (isCancellation(error)) throw error;
      const cause = rootMessage(error);
      log.warn('a window of the sweep ended early; rollouts that it did not report are not counted', { window, cause });
      broken ??= `window ${window} of the sweep ended early: ${cause}`;
    } finally {
      running.delete(window);
    }
  }

  return {
    run: async () => void (await Promise.all(Array.from({ length: windows }, (_, window) => run(window)))),
    untilCancelled: () => cancelUntilEnded(() => Array.from(running.values(), ({ workflowId }) => workflowId)),
    figures: () => {
      const figures = sumReports(input, plan, [...reports.values()]);
      return { ...figures, pausedBecause, endedEarly: broken ?? figures.endedEarly };
    },
    chunks: () => Array.from({ length: windows }, (_, window) => reports.get(window)?.chunks ?? 0),
  };
}

type Window = ChildWorkflowHandle<typeof sweepWindow>;

interface Handlers {
  pause(reason: string): void;
  resume(): void;
  arrive(report: SweepWindowReport): void;
}

function handleSignals({ pause, resume, arrive }: Handlers): void {
  setHandler(pauseSignal, (reason) => pause(reason ?? 'paused by hand'), {
    description: 'starts no rollout; those in flight continue; takes a reason',
  });
  setHandler(resumeSignal, resume, { description: 'continues after a pause, also after one of its own' });
  setHandler(windowReportSignal, arrive, { description: 'sent by the windows of this sweep, not by hand' });
}

function startWindow(
  input: SweepInput,
  window: Pick<SweepWindowRequest, 'plan' | 'window' | 'windows' | 'pausedBecause' | 'resumes'>,
): Promise<Window> {
  const { workflowId: sweep, firstExecutionRunId: sweepKey } = workflowInfo();
  const concurrency = Math.ceil(input.concurrency / window.windows);
  return startChild<typeof sweepWindow>('sweepWindow', {
    workflowId: sweepWindowId(sweep, sweepKey, window.window),
    args: [{ sweep, sweepKey, input: { ...input, concurrency }, ...window }],
    // If the sweep is terminated, its windows cancel their rollouts.
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    staticSummary: `window ${window.window + 1} of ${window.windows}: ${concurrency} rollouts at once`,
  });
}

function sumReports(input: SweepInput, plan: SweepPlan, reports: readonly SweepWindowReport[]): SweepFigures {
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
    pausedBecause: null,
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
    cost: all.map((sums) => sums.cost ?? unknownLedger(sums.outcomes)).reduce(addLedgers, {}),
  };
}
