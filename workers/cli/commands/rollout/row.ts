import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { flagsOfRollout } from '../../../../workflows/algorithms/flags.ts';
import { verdictText } from '../../../../workflows/algorithms/verdict-text.ts';
import type { FailureRecord } from '../../../../workflows/contracts/failures.ts';
import type { Trick } from '../../../../workflows/contracts/flags.ts';
import type { Outcome, StopReason } from '../../../../workflows/contracts/outcome.ts';
import type { RolloutResult, Stage } from '../../../../workflows/contracts/rollout.ts';

/** One rollout as the command prints it; with `--json`, one line each. */
export interface RolloutRow {
  /** Workflow id; null when the task was refused before a rollout could be started. */
  readonly rollout: string | null;
  readonly task: string;
  readonly agent: string;
  /** Null when the workflow ended without one, which `failure` explains. */
  readonly outcome: Outcome | null;
  readonly reward: number | null;
  readonly stop: StopReason | null;
  /** The verdict in a line: what the tests said, or which of them decided; null where it came to none. */
  readonly verdict: string | null;
  /** What looked like a trick. */
  readonly flags: readonly Trick[];
  /** Digests of the diff and of the tests' log, both in the store; null where there is none. */
  readonly diff: string | null;
  readonly log: string | null;
  readonly failure: (Pick<FailureRecord, 'message'> & { readonly type: string; readonly stage?: string }) | null;
  readonly stageSeconds: Readonly<Partial<Record<Stage, number>>>;
}

export function rowOf(result: RolloutResult): RolloutRow {
  const { workflowId, task, agent, outcome, reward, stop, failure, stageSeconds } = result;
  const verdict = result.verdict === null ? null : showHidden(verdictText(result.verdict));
  const blobs = { diff: result.diff?.patch.digest ?? null, log: result.verdict?.log.digest ?? null };
  const flags = flagsOfRollout(result).map(({ trick }) => trick);
  return { rollout: workflowId, task, agent, outcome, reward, stop, verdict, flags, ...blobs, failure, stageSeconds };
}

export function rowWithout(
  rollout: string | null,
  task: string,
  agent: string,
  outcome: Outcome | null,
  failure: RolloutRow['failure'],
): RolloutRow {
  const none = { diff: null, log: null };
  const nothing = { reward: null, stop: null, verdict: null, flags: [] };
  return { rollout, task, agent, outcome, ...nothing, ...none, failure, stageSeconds: {} };
}
