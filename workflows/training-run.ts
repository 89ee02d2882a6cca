import {
  allHandlersFinished,
  CancellationScope,
  ContinueAsNew,
  condition,
  continueAsNew,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { control, trainer } from './activities.ts';
import { reconcileEvery } from './activity-options.ts';
import { admissible } from './algorithms/staleness.ts';
import type { GroupSummary } from './contracts/group.ts';
import { parseInput } from './contracts/input.ts';
import { groupDoneSignal, pauseSignal, resumeSignal, runStatusQuery } from './contracts/messages.ts';
import { type RunInput, type RunRequest, type RunState, type RunStatus, runInput } from './contracts/run.ts';
import { cancelGroups, reconcile, startGroup } from './run/groups.ts';
import { createStepper, type Stepper } from './run/stepper.ts';
import { Ledger } from './run/tally.ts';
import { createRunView, type RunView as View } from './run/view.ts';

/**
 * A training run: groups in flight within the admission bound, one step at a time, until the asked-for number of steps.
 * Survives anything by its state, which continue-as-new carries on.
 */
export async function trainingRun(request: RunRequest, carried?: RunState): Promise<RunStatus> {
  const input = parseInput('trainingRun', runInput, request);
  const ledger = new Ledger(input, carried ?? null);
  const stepper = createStepper(input, ledger);
  const view = createRunView(input, ledger);
  setHandler(runStatusQuery, () => view.status(), { description: 'steps, groups by fate, rollouts by outcome' });
  const groupDone = (summary: GroupSummary): void => {
    if (summary.runKey === workflowInfo().firstExecutionRunId) ledger.arrive(summary, view.cancelling);
  };
  setHandler(groupDoneSignal, groupDone, { description: 'sent by the groups of this run, not by hand' });
  const pause = (reason?: string): void => {
    ledger.pausedBecause = reason ?? 'paused by hand';
    view.show();
  };
  setHandler(pauseSignal, pause, { description: 'starts no group and no step; what runs goes on; takes a reason' });
  const resume = (): void => {
    ledger.pausedBecause = null;
    ledger.forgetOutcomes();
    view.show();
  };
  setHandler(resumeSignal, resume, { description: 'goes on after a pause, also one of its own' });

  try {
    if (carried === undefined) await prepare(input, view);
    await trainUntilDone(input, ledger, stepper, view);
  } catch (error) {
    if (!CancellationScope.current().consideredCancelled) {
      if (!(error instanceof ContinueAsNew)) view.failed(error);
      throw error;
    }
    await CancellationScope.nonCancellable(() => cancelEverything(input, ledger, stepper, view));
    throw error;
  }
  ledger.dropReady('cancelled');
  view.phase = 'done';
  view.show();
  return view.status();
}

async function prepare(input: RunInput, view: View): Promise<void> {
  const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
  view.show();
  await control.checkRun({ input });
  const { seed, tasks, training, settings } = input;
  const warmUp = input.warmUp ?? null;
  await trainer.prepareTrainer({ run, runKey, seed, tasks, agent: settings.agent, training, warmUp });
  await trainer.syncWeights({ runKey, version: 0, training });
}

async function trainUntilDone(input: RunInput, ledger: Ledger, stepper: Stepper, view: View): Promise<void> {
  view.phase = 'running';
  while (ledger.step < input.steps) {
    // Before the next step starts: one that always follows at once would keep the run from ever carrying on.
    if (!stepper.running && workflowInfo().continueAsNewSuggested) await carryOn(input, ledger);
    ledger.pausedBecause ??= ledger.reasonToPause();
    view.show();
    // Before anything is decided: what comes while groups are started must not be waited for afterwards.
    const seen = signature(ledger, stepper);
    const { groupsStarted } = ledger;
    if (ledger.pausedBecause === null) {
      const plan = stepper.running ? null : ledger.takeForStep();
      if (plan !== null) stepper.start(plan);
      await admit(input, ledger);
    }
    if (signature(ledger, stepper) !== seen || admittedAny(ledger, groupsStarted)) continue;
    await change(input, ledger, stepper, view);
  }
}

/** Waits until something can be done; after a minute without, asks the server about silent groups and sees to the engines. */
async function change(input: RunInput, ledger: Ledger, stepper: Stepper, view: View): Promise<void> {
  const before = signature(ledger, stepper);
  const due = ledger.missing > 0;
  const changed = due || (await condition(() => signature(ledger, stepper) !== before, reconcileEvery));
  if (!changed || ledger.missing > 0) await reconcile(input, ledger, view.cancelling);
  if (!changed && !stepper.running) stepper.restoreWeights();
}

const signature = (ledger: Ledger, { running }: Stepper): string =>
  `${running} ${ledger.step} ${ledger.inFlight.size} ${ledger.ready.size} ${ledger.missing} ${ledger.pausedBecause}`;

/**
 * Whether groups were started. Those that end untrainable during admission free slots without changing the signature, so the
 * loop runs once more.
 */
const admittedAny = (ledger: Ledger, groupsStarted: number): boolean => ledger.groupsStarted > groupsStarted;

async function admit(input: RunInput, ledger: Ledger): Promise<void> {
  const count = admissible({
    inFlight: ledger.inFlight.size,
    ready: ledger.ready.size,
    inStep: ledger.inStep,
    groupsPerStep: input.groupsPerStep,
    maxStaleness: input.maxStaleness,
    stepsLeft: input.steps - ledger.step - (ledger.inStep > 0 ? 1 : 0),
  });
  await Promise.all(Array.from({ length: count }, () => startGroup(input, ledger)));
}

async function carryOn(input: RunInput, ledger: Ledger): Promise<never> {
  await condition(allHandlersFinished);
  return continueAsNew<typeof trainingRun>(input, ledger.state());
}

/** Leaves nothing behind: every group in flight is cancelled by name, and waited for. */
async function cancelEverything(input: RunInput, ledger: Ledger, stepper: Stepper, view: View): Promise<void> {
  view.phase = 'cancelling';
  view.cancelling = true;
  view.show();
  ledger.dropReady('cancelled');
  while (ledger.inFlight.size > 0) {
    await cancelGroups(ledger);
    const gone = await condition(() => ledger.inFlight.size === 0 || ledger.missing > 0, '5s');
    if (!gone || ledger.missing > 0) await reconcile(input, ledger, true);
  }
  await stepper.untilCancelled();
  ledger.dropStep('cancelled');
  view.phase = 'cancelled';
  view.show();
}
