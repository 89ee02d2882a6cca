import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { flagsOfRollout } from '../../../../workflows/algorithms/flags.ts';
import { verdictText } from '../../../../workflows/algorithms/verdict-text.ts';
import type { FailureRecord } from '../../../../workflows/contracts/failures.ts';
import type { Trick } from '../../../../workflows/contracts/flags.ts';
import type { Outcome, StopReason } from '../../../../workflows/contracts/outcome.ts';
import type { RolloutResult, Stage } from '../../../../workflows/contracts/rollout.ts';

/** One rollout as the command prints it; `--json` prints one object per line. */
export interface RolloutRow {
  /** Workflow id; null when the task was invalid, so that no rollout started. */
  readonly rollout: string | null;
  readonly task: string;
  readonly agent: string;
  /** Null when the workflow ended without one; `failure` says why. */
  readonly outcome: Outcome | null;
  readonly reward: number | null;
  readonly stop: StopReason | null;
  /** Set if its tests had no network because the user said so. */
  readonly offlineTests?: true;
  /** The verdict in one line: what the tests reported, or which tests decided; null when there is none. */
  readonly verdict: string | null;
  /** Suspected tricks. */
  readonly flags: readonly Trick[];
  /** Digest of the diff in the store; null when there is none. */
  readonly diff: string | null;
  /** Digest of the tests' log in the store; null when there is none. */
  readonly log: string | null;
  readonly failure: (Pick<FailureRecord, 'message'> & { readonly type: string; readonly stage?: string }) | null;
  readonly stageSeconds: Readonly<Partial<Record<Stage, number>>>;
}

export function rowOf(result: RolloutResult): RolloutRow {
  const { workflowId, task, agent, outcome, reward, stop, failure, stageSeconds } = result;
  return {
    rollout: workflowId,
    task,
    agent,
    outcome,
    reward,
    stop,
    ...(result.offlineTests && { offlineTests: result.offlineTests }),
    verdict: result.verdict === null ? null : showHidden(verdictText(result.verdict)),
    flags: flagsOfRollout(result).map(({ trick }) => trick),
    diff: result.diff?.patch.digest ?? null,
    log: result.verdict?.log.digest ?? null,
    failure,
    stageSeconds,
  };
}

/** Makes the row of a rollout that has no result. */
export function rowWithoutResult(
  known: Pick<RolloutRow, 'rollout' | 'task' | 'agent' | 'outcome' | 'failure'>,
): RolloutRow {
  const { rollout, task, agent, outcome, failure } = known;
  return {
    rollout,
    task,
    agent,
    outcome,
    reward: null,
    stop: null,
    verdict: null,
    flags: [],
    diff: null,
    log: null,
    failure,
    stageSeconds: {},
  };
}
