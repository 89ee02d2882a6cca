import { workflowInfo } from '@temporalio/workflow';
import { control, evaluation } from '../activities.ts';
import type { FailureRecord } from '../contracts/failures.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import { sweepPriority } from '../contracts/queues.ts';
import type {
  FinishedEvaluation,
  FinishedRollout,
  FinishedStep,
  Regraded,
  RegradeInput,
  RegradeRow,
} from '../contracts/regrade.ts';
import type { Task } from '../contracts/task.ts';
import { attributed, StageFailure } from '../rollout/failure.ts';
import { computeReward } from '../rollout/reward.ts';
import { timeLimitsOf } from '../rollout/time-limits.ts';
import { secondsSpent } from '../shared/seconds-spent.ts';
import { whereOffered } from '../shared/where-offered.ts';
import { type EvaluatedWork, gradeSteps } from './grade-steps.ts';

/** The length to which a row shortens messages, since a record with many rows is a value of history. */
const messageLength = 200;

/**
 * Evaluates the diff of a rollout that has ended, as the rollout did, `repeat` times; no agent runs. A failure of the
 * evaluation becomes part of the row. A failure before it (the server does not answer) is thrown. `spent` gets the seconds of
 * each evaluation.
 */
export async function gradeAgain(
  input: RegradeInput,
  number: number,
  spent: (seconds: number) => void,
): Promise<RegradeRow> {
  const { firstExecutionRunId: regradeKey } = workflowInfo();
  const found = await control.readFinished({
    regradeKey,
    number,
    grader: input.grader ?? null,
    ...(input.tasks !== undefined && { repaired: true }),
  });
  if (found.leftOut !== null) return rowOf(found, [], { state: 'left-out', why: found.leftOut });
  const evaluations: Regraded[] = [];
  try {
    for (let round = 0; round < input.repeat; round += 1) {
      // The id is unique among the evaluations of this regrade. The rollout's own key would not do: it is over, and the reaper would
      // remove the sandbox.
      const epoch = number * input.repeat + round;
      const { reuseVerdicts } = input;
      const regraded = await gradeWork(found.evaluation, { rollout: regradeKey, epoch }, { reuseVerdicts, spent });
      if ('leftOut' in regraded) return rowOf(found, evaluations, { state: 'left-out', why: regraded.leftOut });
      evaluations.push(regraded);
    }
  } catch (error) {
    const failure = attributed('evaluate', error);
    if (!(failure instanceof StageFailure)) throw failure;
    return rowOf(found, evaluations, { state: 'failed', failure: failure.record });
  }
  const state = stateOf(found.before, evaluations);
  const { addresses, diff } = found.evaluation;
  return rowOf(found, evaluations, {
    state,
    ...(state === 'unstable' && { flaky: { addresses, diff: diff.patch.digest } }),
  });
}

interface EvaluationOptions {
  readonly reuseVerdicts: boolean;
  /** Receives the seconds that an evaluation ran, also one that failed. */
  spent(seconds: number): void;
}

/** Grades the work of a rollout, or that at each step of its task. */
async function gradeWork(
  evaluation: FinishedEvaluation,
  epoch: RolloutEpoch,
  options: EvaluationOptions,
): Promise<Regraded | { readonly leftOut: string }> {
  const evaluateOnce = (work: FinishedStep, task: Task) =>
    evaluateWork({ ...evaluation, ...work, task }, epoch, options);
  const { task, steps, diff, snapshot } = evaluation;
  if (steps !== undefined) return gradeSteps(task, steps, evaluateOnce);
  return (await evaluateOnce({ diff, ...(snapshot !== undefined && { snapshot }) }, task)).regraded;
}

async function evaluateWork(
  { task, sandbox, diff, answer, snapshot, evaluationTimeoutSec, rewardPolicy }: FinishedEvaluation,
  epoch: RolloutEpoch,
  { reuseVerdicts, spent }: EvaluationOptions,
): Promise<EvaluatedWork> {
  const { workflowId: run } = workflowInfo();
  const limits = { evaluationTimeoutSec: evaluationTimeoutSec ?? undefined };
  const { evaluationMs: timeoutMs } = timeLimitsOf(limits, { task, usesModel: false });
  const { evaluate } = evaluation(timeoutMs, { priorityKey: sweepPriority });
  const { seconds, ...verdict } = await whereOffered(() =>
    evaluate({
      epoch,
      run,
      task,
      sandbox,
      diff,
      ...(answer !== undefined && { answer }),
      ...(snapshot !== undefined && { snapshot }),
      timeoutMs,
      ...(reuseVerdicts && { reuseVerdict: true }),
    }),
  ).catch((error) => {
    spent(secondsSpent(error));
    throw error;
  });
  spent(seconds);
  const { kind, log, cached, value, scores } = verdict;
  const reward = await computeReward(verdict, rewardPolicy);
  return {
    regraded: { reward, kind, log: log.digest, ...(cached === true && { cached }) },
    value,
    ...(scores !== undefined && { scores }),
  };
}

function stateOf(before: number | null, evaluations: readonly Regraded[]): 'same' | 'changed' | 'unstable' {
  const [first, ...repeated] = evaluations;
  if (repeated.some(({ reward, kind }) => reward !== first?.reward || kind !== first.kind)) return 'unstable';
  return first?.reward === before ? 'same' : 'changed';
}

function rowOf(
  { rollout, rolloutKey, task, before, kindBefore, graderBefore, bundles }: FinishedRollout,
  evaluations: readonly Regraded[],
  end: Pick<RegradeRow, 'state' | 'flaky'> & { readonly why?: string; readonly failure?: FailureRecord },
): RegradeRow {
  const { state, why = null, failure = null, flaky } = end;
  const known = state === 'same' || state === 'changed';
  return {
    rollout,
    rolloutKey,
    task,
    state,
    before,
    after: known ? (evaluations[0]?.reward ?? null) : null,
    kindBefore,
    graderBefore,
    ...(bundles !== undefined && { bundles }),
    evaluations,
    why,
    failure: failure && { ...failure, message: failure.message.slice(0, messageLength) },
    ...(flaky !== undefined && { flaky }),
  };
}
