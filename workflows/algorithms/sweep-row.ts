import type { RolloutResult } from '../contracts/rollout.ts';
import type { SweepRow } from '../contracts/sweep.ts';
import { sandboxSecondsOf, toMs } from './cost.ts';
import { tricksOfRollout } from './flags.ts';

/**
 * The length to which a row shortens messages, since a record with many rows is a value of history; the rollout's
 * result has them whole.
 */
const messageLength = 200;

/** An attempt of a sweep: its task, its number at that task, and its retry. */
export type SweepAttempt = Pick<SweepRow, 'task' | 'attempt' | 'retry'>;

/** Returns the attempt of a number. All tasks come once, then all again, so that what has ended always covers the whole set. */
export function attemptOf(number: number, retry: number, tasks: number): SweepAttempt {
  return { task: number % tasks, attempt: Math.floor(number / tasks), retry };
}

/** Turns a rollout's result into its row in the sweep. */
export function toSweepRow(attempt: SweepAttempt, result: RolloutResult): SweepRow {
  const { workflowId, outcome, reward, stop, failure, trace, stageSeconds, cost } = result;
  const { minVersion = null, maxVersion = null } = trace ?? {};
  return {
    ...attempt,
    taskId: result.task,
    workflowId,
    outcome,
    reward,
    stop,
    failure: failure && { ...failure, message: failure.message.slice(0, messageLength) },
    versions: minVersion === null || maxVersion === null ? null : [minVersion, maxVersion],
    ...(trace?.upstream !== undefined && { model: trace.upstream.model }),
    turns: trace?.turns ?? 0,
    sampledTokens: trace?.sampledTokens ?? 0,
    promptTokens: trace?.promptTokens ?? 0,
    seconds: Object.values(stageSeconds).reduce((sum, seconds) => sum + seconds, 0),
    sandboxSeconds: cost === undefined ? 0 : toMs(sandboxSecondsOf(cost) + cost.evaluationSeconds),
    ...(cost !== undefined && { cost }),
    ...tricksOfRollout(result),
  };
}
