import { workflowInfo } from '@temporalio/workflow';
import { control, evaluation } from '../activities.ts';
import { rewardOf } from '../algorithms/reward.ts';
import type { FailureRecord } from '../contracts/failures.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import { sweepPriority } from '../contracts/priority.ts';
import type { FinishedEvaluation, FinishedRollout, Regraded, RegradeInput, RegradeRow } from '../contracts/regrade.ts';
import { attributed, StageFailure } from '../rollout/failure.ts';
import { limitsOf } from '../rollout/limits.ts';

/** A record holds many rows, and passes through history. */
const messageLength = 200;

/**
 * Evaluates the diff of a rollout that has ended as the rollout did, `repeat` times; no agent runs. What fails at the
 * evaluation is the row's; what fails before (the server does not answer) is thrown.
 */
export async function gradeAgain(input: RegradeInput, number: number): Promise<RegradeRow> {
  const { firstExecutionRunId: regradeKey } = workflowInfo();
  const found = await control.readFinished({
    ...{ regradeKey, number, grader: input.grader ?? null },
    ...(input.tasks !== undefined && { repaired: true as const }),
  });
  if (found.leftOut !== null) return rowOf(found, [], { state: 'left-out', why: found.leftOut });
  const evaluations: Regraded[] = [];
  try {
    for (let round = 0; round < input.repeat; round += 1) {
      // Unique among all evaluations of this regrade; the label of no rollout, which is over and would have it reaped.
      const epoch = number * input.repeat + round;
      evaluations.push(await evaluateOnce(found.evaluation, { rollout: regradeKey, epoch }, input.reuseVerdicts));
    }
  } catch (error) {
    const failure = attributed('evaluate', error);
    if (!(failure instanceof StageFailure)) throw error;
    return rowOf(found, evaluations, { state: 'failed', failure: failure.record });
  }
  const state = stateOf(found.before, evaluations);
  const { addresses, diff } = found.evaluation;
  return rowOf(found, evaluations, {
    state,
    ...(state === 'unstable' && { flaky: { addresses, diff: diff.patch.digest } }),
  });
}

async function evaluateOnce(
  { task, sandbox, diff, evaluationTimeoutSec, rewardPolicy }: FinishedEvaluation,
  attempt: RolloutEpoch,
  reuseVerdicts: boolean,
): Promise<Regraded> {
  const { workflowId: run } = workflowInfo();
  const { evaluationMs: timeoutMs } = limitsOf({ evaluationTimeoutSec: evaluationTimeoutSec ?? undefined }, task);
  const reuse = reuseVerdicts ? { reuseVerdict: true as const } : {};
  const { evaluate } = evaluation(timeoutMs, { priorityKey: sweepPriority });
  const verdict = await evaluate({ attempt, run, task, sandbox, diff, timeoutMs, ...reuse });
  const { kind, log, cached } = verdict;
  return { reward: rewardOf(verdict, rewardPolicy), kind, log: log.digest, ...(cached === true && { cached }) };
}

function stateOf(before: number | null, evaluations: readonly Regraded[]): 'same' | 'changed' | 'unstable' {
  const [first, ...others] = evaluations;
  if (others.some(({ reward, kind }) => reward !== first?.reward || kind !== first.kind)) return 'unstable';
  return first?.reward === before ? 'same' : 'changed';
}

function rowOf(
  { rollout, task, before, kindBefore, graderBefore, bundles }: FinishedRollout,
  evaluations: readonly Regraded[],
  end: Pick<RegradeRow, 'state' | 'flaky'> & { readonly why?: string; readonly failure?: FailureRecord },
): RegradeRow {
  const { state, why = null, failure = null, flaky } = end;
  const known = state === 'same' || state === 'changed';
  return {
    ...{ rollout, task, state, before, kindBefore, graderBefore, evaluations, why },
    after: known ? (evaluations[0]?.reward ?? null) : null,
    ...(bundles !== undefined && { bundles }),
    ...(flaky !== undefined && { flaky }),
    failure: failure && { ...failure, message: failure.message.slice(0, messageLength) },
  };
}
