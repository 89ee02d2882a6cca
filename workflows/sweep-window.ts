import {
  ApplicationFailure,
  CancellationScope,
  ContinueAsNew,
  getExternalWorkflowHandle,
  log,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { windowControlSignal, windowReportSignal } from './contracts/messages.ts';
import { searchAttributes } from './contracts/search-attributes.ts';
import type { SweepState, SweepWindowControl, SweepWindowReport, SweepWindowRequest } from './contracts/sweep-state.ts';
import { continueInNewest } from './shared/continue.ts';
import { type Attempts, cancelAttempts, makeAttempts } from './sweep/attempts.ts';
import { createSweepRollouts } from './sweep/rollouts.ts';
import { createSweepTally, type SweepTally } from './sweep/tally.ts';

/**
 * Makes a window of a sweep's attempts. A sweep that wants more rollouts in flight than one workflow may have as children
 * has several windows, which record their rows themselves and report their sums to the sweep.
 */
export async function sweepWindow(request: SweepWindowRequest, carried?: SweepState): Promise<void> {
  if (workflowInfo().parent === undefined) {
    throw ApplicationFailure.nonRetryable(
      'sweepWindow: expected to be started by an evaluationSweep, got a direct start; start an evaluationSweep instead',
      'InvalidInput',
    );
  }
  const { sweep, sweepKey, input, plan, window, windows, pausedBecause } = request;
  const tally = createSweepTally({ input, state: carried ?? null, nowMs: Date.now(), window: { window, windows } });
  if (carried === undefined) {
    tally.begin(plan);
    tally.pausedBecause = pausedBecause;
    upsertSearchAttributes([{ key: searchAttributes.run, value: sweep }]);
  }
  let resumes = carried?.resumes ?? request.resumes;
  let control = carried?.control ?? request.control;
  const reports = createReports(request, tally, () => resumes);
  const attempts: Attempts = {
    sweep,
    sweepKey,
    window,
    tally,
    rollouts: createSweepRollouts(request, input, tally),
    show: reports.sendIfChanged,
    continueAsNew: () => continueInNewest<typeof sweepWindow>(request, { ...tally.state(), resumes, control }),
  };
  const obey = (now: SweepWindowControl): void => {
    // A later one has overtaken it.
    if (now.number <= control) return;
    control = now.number;
    if (now.resumes > resumes) tally.watch.forget();
    resumes = Math.max(resumes, now.resumes);
    tally.budget = now.budget;
    tally.pausedBecause = now.pausedBecause;
    tally.changes += 1;
  };
  setHandler(windowControlSignal, obey, { description: 'sent by the sweep of this window, not by hand' });
  try {
    await makeAttempts(attempts);
  } catch (error) {
    if (CancellationScope.current().consideredCancelled) {
      await CancellationScope.nonCancellable(async () => {
        await cancelAttempts(attempts);
        await reports.send();
      });
    } else if (!(error instanceof ContinueAsNew)) {
      await reports.send();
    }
    throw error;
  }
  await reports.send();
}

/** Creates the reports of a window: one for each percent of its attempts, each resume, and each change that concerns the sweep. */
function createReports({ sweep, sweepKey, window }: SweepWindowRequest, tally: SweepTally, resumes: () => number) {
  let reported = '';
  let reportedResumes = 0;

  async function send(): Promise<void> {
    const { unsaved, sums, inFlight, pin, pausedBecause, endedEarly } = tally;
    const report: SweepWindowReport = {
      sweepKey,
      window,
      chunks: unsaved.chunks,
      sums,
      inFlight: inFlight.size,
      policyVersion: pin.policyVersion,
      pausedBecause,
      resumes: resumes(),
      endedEarly,
    };
    await getExternalWorkflowHandle(sweep)
      .signal(windowReportSignal, report)
      .catch((error) => log.info('the sweep is closed and takes no report', { error: String(error) }));
  }

  return {
    send,
    sendIfChanged(): void {
      const { ended, planned, inFlight, pin, pausedBecause, endedEarly } = tally;
      setCurrentDetails(`${ended} of ${planned} attempts of this window have ended, ${inFlight.size} in flight`);
      const percent = Math.floor((100 * ended) / Math.max(1, planned));
      const now = `${percent} ${pin.policyVersion} ${pausedBecause} ${endedEarly}`;
      // A pause after a resume is news to the sweep, whatever its reason.
      if (now === reported && resumes() === reportedResumes) return;
      reported = now;
      reportedResumes = resumes();
      void send();
    },
  };
}
