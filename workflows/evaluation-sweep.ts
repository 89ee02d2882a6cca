import { CancellationScope, ContinueAsNew, log, setHandler, workflowInfo } from '@temporalio/workflow';
import { batches } from './activities.ts';
import { rootMessage } from './contracts/error-message.ts';
import { parseInput, requireShortId } from './contracts/input.ts';
import { sweepStatusQuery } from './contracts/messages.ts';
import { type SweepInput, type SweepPlan, type SweepRequest, type SweepResult, sweepInput } from './contracts/sweep.ts';
import type { SweepState } from './contracts/sweep-state.ts';
import { handleBudget } from './shared/budget.ts';
import { continueInNewest } from './shared/continue.ts';
import { handlePause } from './shared/pause.ts';
import { pauseAtFailure } from './shared/pause-at-failure.ts';
import { type Attempts, cancelAttempts, makeAttempts } from './sweep/attempts.ts';
import { createSweepRollouts } from './sweep/rollouts.ts';
import { createSweepTally, type SweepTally } from './sweep/tally.ts';
import { createSweepView, type SweepView } from './sweep/view.ts';

/** A sweep's input with the parts that work on it. */
interface Sweep {
  readonly input: SweepInput;
  readonly tally: SweepTally;
  readonly view: SweepView;
  readonly attempts: Attempts;
}

/**
 * Evaluates one policy version with a number of attempts at each task, of which a bounded number runs at once. It trains
 * nothing. Rollouts are recorded as they end; continue-as-new carries only the sweep's state, and leaves rollouts running.
 */
export async function evaluationSweep(request: SweepRequest, carried?: SweepState): Promise<SweepResult> {
  requireShortId('evaluationSweep', workflowInfo().workflowId);
  const input = parseInput('evaluationSweep', sweepInput, request);
  const sweep = createSweep(input, carried ?? null);
  const { tally, view } = sweep;
  setHandler(sweepStatusQuery, () => view.status(), { description: 'attempts ended, counted and left out' });
  const changed = (): void => {
    tally.changes += 1;
  };
  handlePause(tally, { what: 'rollout', changed });
  handleBudget(tally, changed);
  try {
    if (carried === undefined) {
      view.show();
      const { workflowId, firstExecutionRunId: sweepKey } = workflowInfo();
      const { startedAt } = tally;
      tally.begin(await batches.planSweep({ sweep: workflowId, sweepKey, startedAt, input }));
    }
    view.phase = 'running';
    await makeAttempts(sweep.attempts);
  } catch (error) {
    if (!CancellationScope.current().consideredCancelled) {
      if (!(error instanceof ContinueAsNew)) view.failed(error);
      throw error;
    }
    await CancellationScope.nonCancellable(() => cancelEverything(sweep));
    throw error;
  }
  const result = await pauseAtFailure({ tally, work: () => summarise(sweep), show: view.show });
  view.finished(result);
  return result;
}

function createSweep(input: SweepInput, carried: SweepState | null): Sweep {
  const { workflowId, firstExecutionRunId: sweepKey } = workflowInfo();
  const tally = createSweepTally({ input, state: carried, nowMs: Date.now() });
  const sweep: Sweep = {
    input,
    tally,
    view: createSweepView(input, tally),
    attempts: {
      sweep: workflowId,
      sweepKey,
      tally,
      rollouts: createSweepRollouts({ sweep: workflowId, sweepKey }, input, tally),
      show: () => sweep.view.show(),
      continueAsNew: () => continueInNewest<typeof evaluationSweep>(input, tally.state()),
    },
  };
  return sweep;
}

async function summarise({ input, tally }: Sweep): Promise<SweepResult> {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  const plan: SweepPlan = { ...tally.plan, policyVersion: tally.pin.policyVersion };
  return batches.summariseSweep({
    sweep: workflowId,
    sweepKey: firstExecutionRunId,
    input,
    plan,
    chunks: tally.unsaved.chunks,
    endedEarly: tally.endedEarly,
    startedAt: tally.startedAt,
    endedAt: Date.now(),
  });
}

/** Cancels every rollout in flight, waits for their ends, and summarises those that had ended. */
async function cancelEverything(sweep: Sweep): Promise<void> {
  const { tally, view, attempts } = sweep;
  view.phase = 'cancelling';
  tally.endedEarly ??= 'cancelled';
  await cancelAttempts(attempts);
  if (tally.begun) {
    await summarise(sweep).catch((error) =>
      log.warn('the cancelled sweep has no report', { error: rootMessage(error) }),
    );
  }
  view.phase = 'cancelled';
  view.show();
}
