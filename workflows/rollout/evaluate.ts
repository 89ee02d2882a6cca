import { evaluation } from '../activities.ts';
import { rewardOfSteps } from '../algorithms/task-step.ts';
import type { Verdict } from '../contracts/verdict.ts';
import { secondsSpent } from '../shared/seconds-spent.ts';
import { whereOffered } from '../shared/where-offered.ts';
import type { EpochContext, Produced } from './epoch-context.ts';
import { computeReward } from './reward.ts';
import { untilAllowed } from './until-allowed.ts';

/** Evaluates the work of an agent in a fresh sandbox. */
export async function evaluateFresh(
  { input, resolved, limits, epoch, progress, meter }: EpochContext,
  { diff, answer, snapshot, limitsCreations }: Omit<Produced, 'end' | 'trace'>,
): Promise<Verdict> {
  const { sandbox, reuseVerdicts } = input;
  const { seconds, ...verdict } = await progress.stage('evaluate', async () => {
    if (limitsCreations) await untilAllowed();
    const ran = whereOffered(() =>
      evaluation(limits.evaluationMs).evaluate({
        epoch,
        run: input.member?.run ?? '',
        task: resolved.task,
        sandbox,
        diff,
        ...(answer !== undefined && { answer }),
        ...(snapshot !== undefined && { snapshot }),
        timeoutMs: limits.evaluationMs,
        ...(reuseVerdicts === true && { reuseVerdict: reuseVerdicts }),
      }),
    );
    return ran.catch((error) => {
      meter.evaluation(secondsSpent(error));
      throw error;
    });
  });
  meter.evaluation(seconds);
  return verdict;
}

/** Evaluates the work of an agent, unless it is graded already, and computes its reward. */
export async function evaluate(
  context: EpochContext,
  produced: Omit<Produced, 'end' | 'trace'>,
): Promise<{ readonly verdict: Verdict; readonly reward: number }> {
  const { input, resolved, progress } = context;
  const { graded, steps } = produced;
  if (graded !== undefined && 'failure' in graded) throw graded.failure;
  const verdict = graded?.verdict ?? (await evaluateFresh(context, produced));
  const policy = input.rewardPolicy;
  const reward = await progress.stage('reward', async () => {
    if (steps !== undefined) return rewardOfSteps(steps, resolved.task, input.purpose);
    return computeReward(verdict, policy);
  });
  return { verdict, reward };
}
