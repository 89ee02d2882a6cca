import { provisioningMs } from '../activity-options.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { ResolvedTask, TaskStep } from '../contracts/task.ts';

const defaultAgentSec = 1800;
const defaultEvaluationSec = 600;
/** The time for provisioning, diff and release, on top of the agent's and the evaluation's own time. */
const marginSec = 900;

export interface TimeLimits {
  readonly agentMs: number;
  /** The longest time for which the clock of an agent stands still. */
  readonly waitingMs: number;
  /** The same of the agents of all steps together. */
  readonly waitingInAllMs: number;
  readonly evaluationMs: number;
  /**
   * The age at which the reaper may remove a sandbox if the server no longer knows its rollout; above agent, its waiting and
   * evaluation together.
   */
  readonly lifetimeMs: number;
  /** The lifetime of the agent's secret. It is longer, because the session opens before provisioning, which may take hours. */
  readonly sessionMs: number;
}

/**
 * Returns the longest time for which the clock of an agent stands still in a sandbox that leaves this time for all waits, or all of
 * it if undefined. It never is 0, with which no agent would be known to have waited too long.
 */
export const waitingWithin = (
  { waitingMs }: Pick<TimeLimits, 'waitingMs'>,
  leftMs: number | undefined,
  waitedBeforeMs: number,
): number => (leftMs === undefined ? waitingMs : Math.min(waitingMs, Math.max(1, leftMs - waitedBeforeMs)));

type RequestedLimits = Pick<RolloutInput, 'agentTimeoutSec' | 'evaluationTimeoutSec' | 'sandboxLifetimeSec'> &
  Partial<Pick<RolloutInput, 'engineWaitingSec' | 'upstream'>>;

/** Returns the limits of the input, else those of the task, else the defaults. */
export function timeLimitsOf(
  input: RequestedLimits,
  { task, usesModel }: Pick<ResolvedTask, 'task' | 'usesModel'>,
): TimeLimits {
  // Only the engines of a policy are temper's to wait for.
  const waitingSec = usesModel && input.upstream === undefined ? (input.engineWaitingSec ?? 0) : 0;
  const agentSec = input.agentTimeoutSec ?? task.agentTimeoutSec ?? defaultAgentSec;
  const evaluationSec = input.evaluationTimeoutSec ?? task.evaluationTimeoutSec ?? defaultEvaluationSec;
  // A task of several steps has these limits in each of them, unless the step has its own.
  const steps: readonly Partial<TaskStep>[] = task.steps ?? [{}];
  const secondsOf = (step: Partial<TaskStep>): number =>
    (input.agentTimeoutSec ?? step.agentTimeoutSec ?? agentSec) +
    waitingSec +
    (input.evaluationTimeoutSec ?? step.evaluationTimeoutSec ?? evaluationSec) +
    marginSec;
  const least = steps.reduce((sum, step) => sum + secondsOf(step), 0);
  const lifetimeSec = Math.max(input.sandboxLifetimeSec ?? least, least);
  const lifetimeMs = lifetimeSec * 1000;
  const sessionMs = lifetimeMs + provisioningMs;
  const [agentMs, waitingMs, evaluationMs] = [agentSec * 1000, waitingSec * 1000, evaluationSec * 1000];
  const waitingInAllMs = steps.length * waitingMs;
  return { agentMs, waitingMs, waitingInAllMs, evaluationMs, lifetimeMs, sessionMs };
}
