import assert from 'node:assert/strict';
import type { Client } from '@temporalio/client';
import { warmUpProgress } from '../../workers/cli/commands/train/follow-run.ts';
import { pauseSignal, resumeSignal, runStatusQuery, setBudgetUpdate } from '../../workflows/contracts/messages.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { trainingRun } from '../../workflows/index.ts';
import { until } from '../helpers/until.ts';

/** The budget of a run that may make no step yet: a group has more rollouts. */
export const noStep = { rollouts: 1 } as const;
const limitMs = 600_000;

/**
 * A training run that makes only the steps that a test allows, so that it cannot end before the last fault has come, however
 * slow or fast the machine is. A step that is held has agents that wait for a turn, or an update that waits for an answer.
 */
export interface HeldRun {
  /** The number of steps that the run may make by now. */
  readonly allowed: number;
  /** Allows the next step. */
  allow(): Promise<void>;
  /** Allows the next step with the policy server stopped: its agents begin, and wait for their first turn. */
  allowHeld(): Promise<void>;
  /** Stops the policy server before the update of the step whose agents are held: it then waits for its first answer. */
  holdUpdate(): Promise<void>;
  /** Allows the next step, and holds its update. */
  allowToUpdate(): Promise<void>;
  allowAll(): Promise<void>;
  /** Lets a stopped policy server continue. */
  letGo(): void;
  /** Resolves once the run has made so many steps. */
  untilMade(step: number): Promise<void>;
}

export interface HeldRunOptions {
  readonly client: Client;
  readonly runId: string;
  /** The input of the run, which has started with the budget `noStep`. No group of it may be dropped. */
  readonly request: RunRequest;
  /** Returns the process of the policy server, which is engine and trainer; null while none runs. */
  policyPid(): number | null;
}

/** Takes hold of a run by its budget, which pays for the rollouts of the allowed steps. */
export function holdRun({ client, runId, request, policyPid }: HeldRunOptions): HeldRun {
  const { steps = 0, groupsPerStep = 0, rolloutsPerGroup = 0 } = request;
  const handle = client.workflow.getHandle<typeof trainingRun>(runId);
  let allowed = 0;

  function signalPolicy(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pid = policyPid();
    if (pid !== null) process.kill(pid, signal);
  }

  /** Waits for a status, through restarts of the server and of the control worker. */
  const untilStatus = (isReached: (status: RunStatus) => boolean): Promise<unknown> =>
    until(async () => {
      const status = await handle.query(runStatusQuery).catch(() => null);
      return status !== null && status.phase !== 'preparing' && isReached(status);
    }, limitMs);

  const untilMade = async (step: number): Promise<void> => {
    await untilStatus((status) => {
      const isStuck = status.phase === 'paused' && status.inFlight.length === 0 && status.step < step;
      assert.ok(!isStuck, `expected the run to make step ${step}: ${JSON.stringify(status)}`);
      return status.step >= step;
    });
  };

  async function payFor(rollouts: number | null): Promise<void> {
    const update = () => handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts }] });
    await until(() => update().then(Boolean, () => false), limitMs);
  }

  /** Allows the next step when the run has room for its groups beside those of the last one. */
  async function allowNext(before: () => void): Promise<void> {
    assert.ok(allowed < steps, `expected a step to be left of ${steps}`);
    await untilMade(Math.max(0, allowed - 1));
    before();
    allowed += 1;
    await payFor(allowed * groupsPerStep * rolloutsPerGroup);
  }

  async function holdUpdate(): Promise<void> {
    // Meanwhile no step begins, and the agents end.
    await untilStatus(({ inFlight }) => inFlight.length > 0);
    await handle.signal(pauseSignal, 'the test holds its update');
    await untilStatus(({ phase }) => phase === 'paused');
    signalPolicy('SIGCONT');
    await untilStatus(({ inFlight }) => inFlight.length === 0);
    signalPolicy('SIGSTOP');
    await handle.signal(resumeSignal);
  }

  return {
    get allowed() {
      return allowed;
    },
    allow: () => allowNext(() => undefined),
    allowHeld: () => allowNext(() => signalPolicy('SIGSTOP')),
    holdUpdate,
    async allowToUpdate() {
      await allowNext(() => signalPolicy('SIGSTOP'));
      await holdUpdate();
    },
    async allowAll() {
      allowed = steps;
      await payFor(null);
    },
    letGo: () => signalPolicy('SIGCONT'),
    untilMade,
  };
}

/** Whether a run has made a step of its warm-up, or all of them. */
export async function hasBegun(client: Client, runId: string): Promise<boolean> {
  const handle = client.workflow.getHandle(runId);
  return (await handle.query(runStatusQuery)).phase !== 'preparing' || (await warmUpProgress(handle)) !== null;
}
