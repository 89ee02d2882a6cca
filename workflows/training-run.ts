import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  ContinueAsNew,
  condition,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { recording } from './activities.ts';
import { reconcileAfterMs, reconcileMostMs } from './activity-options.ts';
import { admissible } from './algorithms/staleness.ts';
import { rootMessage } from './contracts/error-message.ts';
import type { GroupSummary } from './contracts/group.ts';
import { parseInput, requireShortId } from './contracts/input.ts';
import { groupDoneSignal, runStatusQuery, type SkippedStep, skipStepUpdate } from './contracts/messages.ts';
import { type RunInput, type RunRequest, type RunStatus, runInput } from './contracts/run.ts';
import type { RunState } from './contracts/run-state.ts';
import type { WorkflowEnd } from './contracts/workflow-end.ts';
import { withinBudget } from './run/budget.ts';
import { countGroup } from './run/count-group.ts';
import { cancelGroups, reconcile, startGroup } from './run/groups.ts';
import { prepare } from './run/prepare.ts';
import type { RunTally } from './run/run-tally.ts';
import { createStepper, type Stepper } from './run/stepper.ts';
import { createRunTally } from './run/tally.ts';
import { createRunView, type RunView } from './run/view.ts';
import { handleBudget } from './shared/budget.ts';
import { continueInNewest, createHistoryRoom, shouldContinue } from './shared/continue.ts';
import { handlePause } from './shared/pause.ts';

/** The largest number of groups in flight: the server allows a workflow 2,000 children. */
const groupsInFlight = 1_500;
/** The number of groups that are started in one workflow task. */
const startsAtOnce = 50;

/** A run's input with the parts that work on it. */
interface Run {
  readonly input: RunInput;
  readonly tally: RunTally;
  readonly stepper: Stepper;
  readonly view: RunView;
  /** Whether the history has room for more groups. */
  readonly hasRoom: () => boolean;
  /** The time until the next look if nothing changes, in milliseconds: the longer the run rests, the longer. */
  lookAfterMs: number;
}

/**
 * A training run: keeps groups in flight within the admission bound and makes one step at a time, until the requested number
 * of steps is done. Its whole state is carried on by continue-as-new.
 */
export async function trainingRun(request: RunRequest, carried?: RunState): Promise<RunStatus> {
  requireShortId('trainingRun', workflowInfo().workflowId);
  const input = parseInput('trainingRun', runInput, request);
  // Despite its documentation, this is the start of the execution and not of the chain.
  const startedAt = workflowInfo().startTime.getTime();
  const tally = createRunTally(input, carried ?? null, startedAt, (settled) => countGroup(input, settled));
  const view = createRunView(input, tally);
  const stepper = createStepper(input, tally);
  const run: Run = { input, tally, stepper, view, hasRoom: createHistoryRoom(), lookAfterMs: reconcileAfterMs };
  handleMessages(run);
  try {
    if (carried === undefined) await prepare(input, tally, view);
    await trainUntilDone(run);
  } catch (error) {
    if (error instanceof ContinueAsNew) throw error;
    const isCancelled = CancellationScope.current().consideredCancelled;
    if (isCancelled) await CancellationScope.nonCancellable(() => cancelEverything(run));
    else view.failed(error);
    await recordEnd(run, isCancelled ? cancelled : { kind: 'failed', message: rootMessage(error) });
    throw error;
  }
  tally.dropReady('cancelled');
  view.phase = 'done';
  view.show();
  await recordEnd(run, null);
  return view.status();
}

const cancelled: WorkflowEnd = { kind: 'cancelled', message: 'cancelled' };

/** Records how the run ends, so that it can be shown without the Temporal server. */
async function recordEnd({ view }: Run, end: WorkflowEnd | null): Promise<void> {
  const { firstExecutionRunId: runKey } = workflowInfo();
  const status = view.status();
  await CancellationScope.nonCancellable(() => recording.recordRunEnd({ runKey, status, end, endedAt: Date.now() }));
}

function handleMessages(run: Run): void {
  const { tally, view } = run;
  setHandler(runStatusQuery, () => view.status(), { description: 'steps, groups by fate, rollouts by outcome' });
  const groupDone = (summary: GroupSummary): void => {
    if (summary.runKey === workflowInfo().firstExecutionRunId) tally.arrive(summary, view.cancelling);
  };
  setHandler(groupDoneSignal, groupDone, { description: 'sent by the groups of this run, not by hand' });
  handleBudget(tally, view.show);
  handleSkip(run);
  handlePause(tally, { what: 'group and no step', changed: view.show, onResume: () => tally.forgetReasons() });
}

function handleSkip({ tally, stepper, view }: Run): void {
  const skip = (): SkippedStep => {
    const groups = tally.skipStep();
    view.show();
    return { step: tally.step + 1, groups };
  };
  setHandler(skipStepUpdate, skip, {
    description: 'leaves out the step that has failed, and resumes the run',
    validator() {
      if (tally.hasFailedStep && !stepper.makesStep) return;
      throw ApplicationFailure.nonRetryable(
        `expected a run that is paused because a step has failed, got one ${stepper.makesStep ? 'that makes a step' : 'without a failed step'}; \`temper show\` says what it does`,
        'InvalidInput',
      );
    },
  });
}

async function trainUntilDone(run: Run): Promise<void> {
  const { input, tally, stepper, view } = run;
  view.phase = 'running';
  while (tally.step < input.steps) {
    // This is checked before the next step starts. If a step always followed at once, the run could never continue as new.
    if (!stepper.running && shouldContinue()) await carryOn(run);
    tally.pausedBecause ??= tally.watch.reasonToPause('rollouts') ?? tally.updates.reasonToPause();
    view.show();
    // The signature is read before any decision, so that nothing that arrives while groups are started is waited for afterwards.
    const seen = signature(run);
    const { groupsStarted } = tally;
    if (tally.pausedBecause === null) {
      const plan = stepper.makesStep ? null : tally.takeForStep();
      if (plan !== null) stepper.start(plan);
      pauseIfStale(tally);
    }
    if (tally.pausedBecause === null) await admit(run);
    // Groups that end untrainable during admission free slots without changing the signature; the loop then runs once more.
    if (signature(run) !== seen || tally.groupsStarted > groupsStarted) continue;
    await untilChanged(run);
  }
}

/** Pauses a run that drops one group after another as too stale. While a step is made, it learns. */
function pauseIfStale(tally: RunTally): void {
  if (tally.inStep > 0) return;
  tally.pausedBecause = tally.staleWatch.reasonToPause(tally.policyVersion) ?? tally.pausedBecause;
}

/** Waits until something changes. If nothing does, reconciles silent groups with the server and restores engine weights. */
async function untilChanged(run: Run): Promise<void> {
  const { input, tally, stepper, view } = run;
  const before = signature(run);
  const due = tally.missing > 0;
  const changed = due || (await condition(() => signature(run) !== before, run.lookAfterMs));
  const isAtRest = stepper.running || tally.inFlight.size === 0;
  run.lookAfterMs = !changed && isAtRest ? Math.min(2 * run.lookAfterMs, reconcileMostMs) : reconcileAfterMs;
  if (!changed || tally.missing > 0) await reconcile(input, tally, view.cancelling);
  // Without a group in flight no rollout waits for the weights.
  if (!changed && !stepper.running && tally.inFlight.size > 0) stepper.restoreWeights();
}

function signature({ tally, stepper: { running } }: Run): string {
  const { step, inFlight, ready, missing, pausedBecause, budget } = tally;
  return `${running} ${step} ${inFlight.size} ${ready.size} ${missing} ${pausedBecause} ${JSON.stringify(budget)}`;
}

async function admit({ input, tally, stepper, hasRoom }: Run): Promise<void> {
  // A step may last for hours in which groups end untrained. The run continues as new once it is over, and starts the others then.
  if (!hasRoom()) return;
  const wanted = admissible({
    inFlight: tally.inFlight.size,
    ready: tally.ready.size,
    inStep: tally.inStep,
    groupsPerStep: input.groupsPerStep,
    maxStaleness: input.maxStaleness,
    stepsLeft: input.steps - tally.step - (tally.inStep > 0 ? 1 : 0),
  });
  const free = Math.max(0, Math.min(wanted, groupsInFlight - tally.inFlight.size));
  const count = withinBudget(input, tally, free, tally.inFlight.size === 0 && !stepper.running);
  // With many groups, one workflow task would be too large for the server. The loop of the run starts the others.
  const atOnce = Math.min(count, startsAtOnce);
  await Promise.all(Array.from({ length: atOnce }, () => startGroup(input, tally)));
}

async function carryOn({ input, tally }: Run): Promise<never> {
  await condition(allHandlersFinished);
  return continueInNewest<typeof trainingRun>(input, tally.state());
}

/** Cancels every group in flight by name and the step in progress, and waits for their ends. */
async function cancelEverything({ input, tally, stepper, view }: Run): Promise<void> {
  view.phase = 'cancelling';
  view.cancelling = true;
  view.show();
  tally.dropReady('cancelled');
  await cancelGroups(input, tally);
  await stepper.untilCancelled();
  tally.dropStep('cancelled');
  view.phase = 'cancelled';
  view.show();
}
