import { Context } from '@temporalio/activity';
import { emptyDiff } from '../../infra/grading/diff.ts';
import { type Judged, judgeDiff, verdictOfEnded } from '../../infra/grading/judge-diff.ts';
import { verdictKey } from '../../infra/grading/verdict-cache.ts';
import { prepareWorkspace } from '../../infra/grading/workspace.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import type { ReportImage } from '../../infra/sandbox/image.ts';
import { prepareImage } from '../../infra/sandbox/prepare-image.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { sha256 } from '../../infra/store/files.ts';
import type { HarborTask } from '../../infra/tasks/harbor/harbor.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { evaluationSandboxName } from '../../workflows/contracts/ids.ts';
import { evaluationMarginMs, preparationMs } from '../../workflows/contracts/stage-limits.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { atBoundary } from '../boundary.ts';
import type { Evaluate, EvaluationActivities } from '../interfaces.ts';
import { filesIn, type Host, specOf } from './host.ts';
import { within } from './within.ts';

export function createEvaluation(host: Host): EvaluationActivities {
  return {
    evaluate: (input) =>
      atBoundary((signal, report) => evaluate(host, input, { number: Context.current().info.attempt, report }, signal)),
  };
}

/** One attempt at an evaluation. */
export interface EvaluationAttempt {
  /** Counted from 1. */
  readonly number: number;
  readonly report: ReportImage;
}

/**
 * Judges a diff in a fresh sandbox. The verdict depends on diff, task and image alone, so any attempt may compute it. Needs no
 * activity around it.
 */
export async function evaluate(
  host: Host,
  input: Evaluate,
  attempt: EvaluationAttempt,
  signal: AbortSignal,
): Promise<Verdict> {
  const { task } = input;
  const files = await host.tasks.open(task);
  const provider = await host.choose(input.sandbox, task, filesIn(files));
  const image = await prepareImage(host, provider, { task, files }, attempt.report, signal);
  const judging = { ...input, provider, files, image };
  if (input.reuseVerdict !== true) return evaluateAfresh(host, judging, attempt, signal);
  const key = verdictKey({ ...input, imageId: await provider.imageId(image), kind: provider.kind });
  const known = key === null ? null : await host.verdicts.find(key);
  if (known !== null) return known;
  const verdict = await evaluateAfresh(host, judging, attempt, signal);
  if (key !== null) await host.verdicts.keep(key, verdict);
  return verdict;
}

interface Judging extends Evaluate {
  readonly provider: SandboxProvider;
  readonly files: HarborTask;
  /** What its sandboxes are made of. */
  readonly image: string;
}

async function evaluateAfresh(
  host: Host,
  input: Judging,
  { number }: EvaluationAttempt,
  signal: AbortSignal,
): Promise<Verdict> {
  const { verdict, invalidReward } = await judgeOnce(host, input, number, signal);
  if (invalidReward === null) return verdict;
  // Code of an agent can make the tests write what is no reward. Excused is only what the task writes by itself, too.
  const diff = await emptyDiff(host.store, input.diff.baseCommit);
  const untouched =
    diff.patch.digest === input.diff.patch.digest
      ? invalidReward
      : (await judgeOnce(host, { ...input, diff }, number, signal)).invalidReward;
  if (untouched === null) return verdict;
  throw new TemperFailure('InvalidReward', `${untouched}; so also over the untouched workspace`);
}

/** In a fresh sandbox, which is gone afterwards. */
async function judgeOnce(host: Host, input: Judging, number: number, signal: AbortSignal): Promise<Judged> {
  const { provider, timeoutMs } = input;
  const nameOf = (one: number): string => evaluationSandboxName(input.attempt, one);
  // What attempts that died left behind may be half done: each starts from nothing.
  for (let earlier = 1; earlier < number; earlier += 1) await provider.remove(nameOf(earlier));
  const name = nameOf(number);
  try {
    const work = (ending: AbortSignal) => judge(host, input, name, ending);
    return await within(timeoutMs + preparationMs, `evaluation ${name}`, work, signal);
  } catch (error) {
    if (!(error instanceof SandboxFailure)) throw error;
    if (error.loss !== 'ended-inside') throw again(error);
    const ended = { task: input.files, diff: input.diff, subject: subjectOf(input) };
    return { verdict: await verdictOfEnded(host.store, ended, error.message), invalidReward: null };
  } finally {
    await provider.remove(name);
  }
}

/** The agent's work is safe in the store: a sandbox that was lost under an evaluation costs another try, and no rollout. */
function again(error: SandboxFailure): Error {
  if (error.type !== 'SandboxLost' && error.type !== 'SandboxConflict') return error;
  return new TemperFailure('SandboxUnavailable', `the evaluation lost its sandbox: ${error.message}`, { cause: error });
}

async function judge(host: Host, input: Judging, name: string, signal: AbortSignal): Promise<Judged> {
  const { attempt, run, task, diff, timeoutMs, provider, files, image } = input;
  const { workdir, diskMb } = task;
  const expiresAtMs = Date.now() + timeoutMs + evaluationMarginMs;
  const place = { name, attempt, run, task, image, purpose: 'evaluation' as const, expiresAtMs };
  const sandbox: Sandbox = await provider.ensure(
    specOf(host, place, { mounts: await host.evaluationMounts(provider.kind), gateway: false }),
    signal,
  );
  const { baseCommit } = await prepareWorkspace(sandbox, files, { workdir, keep: false, hiddenTests: true }, signal);
  requireSameBase(input, baseCommit);
  const path = host.pathOf(provider.kind);
  const subject = subjectOf(input);
  return judgeDiff(sandbox, host.store, { task: files, diff, workdir, diskMb, timeoutMs, path, subject }, signal);
}

/** Neither of the two is in the agent's hands: one is taken before it starts, the other in a fresh sandbox. */
function requireSameBase({ diff, task }: Evaluate, baseCommit: string): void {
  if (diff.baseCommit === baseCommit) return;
  throw new TemperFailure(
    'SetupFailed',
    `expected the set-up of task ${task.id} to give the same files each time, got base commit ${diff.baseCommit} for the agent and ${baseCommit} for its evaluation; make it write nothing that changes, such as the time; a regrade by repaired tasks needs their workspace and set-up as they were`,
  );
}

const subjectOf = ({ diff, task }: Pick<Evaluate, 'diff' | 'task'>): string =>
  sha256([diff.patch.digest, task.bundle.digest, task.image].join('\n'));
