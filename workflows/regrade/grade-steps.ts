import { lackingFor, rewardOfSteps, taskOfStep } from '../algorithms/task-step.ts';
import type { FinishedStep, FinishedSteps, Regraded } from '../contracts/regrade.ts';
import type { Task } from '../contracts/task.ts';
import type { Verdict } from '../contracts/verdict.ts';

/** An evaluation of an agent's work, with the value and the scores of its verdict. */
export interface EvaluatedWork extends Pick<Verdict, 'value' | 'scores'> {
  readonly regraded: Regraded;
}

/**
 * Grades the work at the steps of a task again, in turn, by the rules of a rollout: a step below its `min_reward`, or without a
 * reward, ends the task. Where the new rewards let a step begin that never began, no new reward of the task is known.
 */
export async function gradeSteps(
  task: Task,
  { worked, restPrevented, purpose }: FinishedSteps,
  evaluate: (work: FinishedStep, task: Task) => Promise<EvaluatedWork>,
): Promise<Regraded | { readonly leftOut: string }> {
  const { steps = [] } = task;
  const rewards: { readonly reward: number }[] = [];
  const none = { reward: 0 };
  for (const [index, work] of worked.entries()) {
    const { regraded, ...found } = await evaluate(work, taskOfStep(task, index + 1));
    rewards.push(regraded);
    const isLast = index + 1 === worked.length;
    const isGraded = regraded.kind === 'graded';
    const isEnough = isGraded && lackingFor(steps[index] ?? {}, found).length === 0;
    if (isEnough && !isLast) continue;
    const rest = steps.slice(index + 1);
    if (isEnough && rest.length > 0 && !restPrevented) {
      return { leftOut: `its step ${rest[0]?.name} never began, and would begin with today's rewards` };
    }
    const countsRest = !isGraded || (isEnough && restPrevented);
    const all = countsRest ? [...rewards, ...rest.map(() => none)] : rewards;
    return { ...regraded, reward: rewardOfSteps(all, task, purpose) };
  }
  throw new Error('expected the work at one step at least');
}
