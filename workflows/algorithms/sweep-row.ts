import type { RolloutResult, Stage } from '../contracts/rollout.ts';
import type { SweepRow } from '../contracts/sweep.ts';
import { tricksOfRollout } from './flags.ts';

/** The stages in which a rollout uses a sandbox: the agent's from its start to its end, then the evaluation's. */
const sandboxStages: readonly Stage[] = [
  'provisionSandbox',
  'startAgent',
  'awaitAgent',
  'captureDiff',
  'releaseSandbox',
  'evaluate',
];

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
  const seconds = (of: readonly Stage[]): number => of.reduce((sum, stage) => sum + (stageSeconds[stage] ?? 0), 0);
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
    seconds: seconds(Object.keys(stageSeconds) as Stage[]),
    sandboxSeconds: seconds(sandboxStages),
    cost,
    ...tricksOfRollout(result),
  };
}

/** Creates the row of a rollout that ended without a result of its own. */
export function rowWithoutResult(
  attempt: SweepAttempt,
  end: Pick<SweepRow, 'taskId' | 'workflowId' | 'outcome' | 'cost'> & { readonly message: string | null },
): SweepRow {
  const { message, ...known } = end;
  return {
    ...attempt,
    ...known,
    reward: null,
    stop: null,
    failure: message === null ? null : { type: 'Internal', message: message.slice(0, messageLength) },
    versions: null,
    turns: 0,
    sampledTokens: 0,
    promptTokens: 0,
    seconds: 0,
    sandboxSeconds: 0,
  };
}
