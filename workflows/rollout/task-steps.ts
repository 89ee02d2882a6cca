import { firstOfEach, flagsOfWork } from '../algorithms/flags.ts';
import { lackingFor, taskOfStep } from '../algorithms/task-step.ts';
import type { Flag } from '../contracts/flags.ts';
import type { StepResult } from '../contracts/rollout.ts';
import type { TaskStep } from '../contracts/task.ts';
import type { Verdict } from '../contracts/verdict.ts';
import type { EpochContext, Prepared, Produced } from './epoch-context.ts';
import type { EpochHost } from './epoch-host.ts';
import { evaluateFresh } from './evaluate.ts';
import { StageFailure } from './failure.ts';
import type { GradedInPlace } from './grade-in-place.ts';
import { computeReward } from './reward.ts';
import { timeLimitsOf } from './time-limits.ts';
import { waitedTooLong } from './unscored.ts';
import { type Worked, workOnce } from './work-once.ts';

interface PreparedForSteps extends Prepared {
  readonly steps: readonly TaskStep[];
  readonly limitsCreations: boolean;
}

/**
 * Works at the steps of a task in turn, each with a new agent in the same sandbox. Each step is evaluated at once, in a fresh
 * sandbox, since its reward decides whether the next one begins. An agent learns nothing of that reward but that its step began.
 */
export async function workInSteps(
  context: EpochContext,
  host: EpochHost,
  sandboxed: PreparedForSteps,
): Promise<Worked> {
  const { limitsCreations } = sandboxed;
  const rows: StepResult[] = [];
  const flags: Flag[] = [];
  let last: Worked | undefined;
  let waitedBeforeMs = 0;
  for (const [index, step] of sandboxed.steps.entries()) {
    const inStep = contextOf(context, index + 1);
    const work = await workOnce(inStep, host, { ...sandboxed, waitedBeforeMs }).catch((error: unknown) =>
      ifUnprepared(error, index),
    );
    if (work instanceof StageFailure) {
      rows.push(...sandboxed.steps.slice(index).map(rowOfNone));
      context.progress.note(`step ${step.name} could not begin: ${work.message}`);
      break;
    }
    const graded = await gradeStep(inStep, { ...work, limitsCreations });
    waitedBeforeMs += work.end.waitedMs ?? 0;
    last = { ...work, end: withNetworkOf(work.end, last), graded };
    flags.push(...flagsOf(last));
    if ('failure' in graded) break;
    const { verdict } = graded;
    const reward = await context.progress.stage('reward', () => computeReward(verdict, context.input.rewardPolicy));
    rows.push(rowOf(step, work, verdict, reward));
    // An agent that breaks the tests of a step must not raise the mean by what then never runs.
    if (verdict.kind !== 'graded') rows.push(...sandboxed.steps.slice(index + 1).map(rowOfNone));
    const next = sandboxed.steps[index + 1];
    if (endsTask(context, step, { ...work, verdict, next })) break;
  }
  if (last === undefined) throw new Error('expected a task with steps');
  const found = firstOfEach(flags);
  return { ...last, steps: rows, ...(found.length > 0 && { stepFlags: found }) };
}

/** Returns the context of one step: its own part of the task, with its own limits. */
function contextOf(context: EpochContext, number: number): EpochContext {
  const { resolved, input } = context;
  const task = taskOfStep(resolved.task, number);
  return { ...context, resolved: { ...resolved, task }, limits: timeLimitsOf(input, { ...resolved, task }) };
}

/** Returns the failure of a set-up that follows an agent's work, which may have caused it: the step counts as 0. Throws any other. */
function ifUnprepared(error: unknown, stepsBefore: number): StageFailure {
  if (stepsBefore > 0 && error instanceof StageFailure && error.record.type === 'SetupFailed') return error;
  throw error;
}

/** Evaluates a step. A failure is kept, because the agent's work is there all the same. */
async function gradeStep(
  context: EpochContext,
  work: Worked & Pick<Produced, 'limitsCreations'>,
): Promise<GradedInPlace> {
  try {
    return { verdict: await evaluateFresh(context, work) };
  } catch (failure) {
    if (!(failure instanceof StageFailure)) throw failure;
    return { failure };
  }
}

function rowOf({ name }: TaskStep, work: Worked, { kind, log }: Verdict, reward: number): StepResult {
  const { end, snapshot } = work;
  const { flags: _flags, ...diff } = work.diff;
  const row = {
    name,
    reward,
    stop: end.stop,
    agentLog: end.log,
    verdict: kind,
    log,
    diff,
    ...(snapshot !== undefined && { snapshot }),
  };
  if (end.network === undefined) return row;
  const { flags: _, ...network } = end.network;
  return { ...row, network };
}

/** Returns the end of a step's agent, with the use that agents before it made of a network that it does not have. */
const withNetworkOf = (end: Worked['end'], before: Worked | undefined): Worked['end'] => {
  const network = end.network ?? before?.end.network;
  return network === undefined ? end : { ...end, network };
};

/** Returns the row of a step that never began because of what an agent did before. */
const rowOfNone = ({ name }: TaskStep): StepResult => ({ name, reward: 0, stop: null, agentLog: null });

const flagsOf = ({ diff, end: { stop, network }, graded }: Worked): readonly Flag[] =>
  flagsOfWork({
    diff,
    stop,
    verdict: graded !== undefined && 'verdict' in graded ? graded.verdict : null,
    ...(network !== undefined && { network }),
  });

/**
 * Whether the steps after this one are left out: its reward or a score is too low, its tests have given none, or this end of its
 * agent is not scored.
 */
function endsTask(
  { input, progress, limits }: EpochContext,
  step: TaskStep,
  { end, verdict, next }: Pick<Worked, 'end'> & { readonly verdict: Verdict; readonly next: TaskStep | undefined },
): boolean {
  if (verdict.kind !== 'graded') return true;
  const lacking = lackingFor(step, verdict);
  if (lacking.length > 0 && next !== undefined) {
    const counts = input.purpose === 'training' ? '; in training it counts as 0, like all steps that do not begin' : '';
    progress.note(`step ${next.name} did not begin: step ${step.name} has ${lacking.join(', and ')}${counts}`);
  }
  if (lacking.length > 0 || waitedTooLong(end, limits)) return true;
  return end.stop === 'deadline' && input.unscored.includes(end.stop);
}
