import type { EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { evaluationMarginMs } from '../../workflows/contracts/stage-limits.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { contentOf, prepareSandbox } from '../sandbox/prepare-image.ts';
import { withAnswer } from './answer.ts';
import { filesOfTests, taskOfTests } from './artifacts/test-image.ts';
import { attribute, requireHosts } from './attribute.ts';
import type { Evaluation, EvaluationHost, EvaluationTry } from './evaluation.ts';
import { judgeAgain, judgeInFreshSandbox } from './judge-in-fresh-sandbox.ts';
import { verdictKey } from './verdict-cache.ts';

/** Judges a diff in a fresh sandbox. The verdict depends on diff, task and image alone, so an evaluation may be repeated. */
export async function evaluate(
  host: EvaluationHost,
  input: EvaluationRequest,
  { number, report }: EvaluationTry,
  signal: AbortSignal,
): Promise<Verdict> {
  const task = taskOfTests(input.task);
  const opened = filesOfTests(await host.tasks.open(task));
  const { files, ownFiles } = await withAnswer(host.store, task, opened, input.answer);
  if (files.gradedIn === 'same') throw needsItsSandbox(task.id);
  const lifetimeMs = input.timeoutMs + evaluationMarginMs;
  const choice = input.snapshot?.kind ?? input.sandbox;
  const provider = await host.choose(choice, task, { filesInImage: files.workspace.size === 0, lifetimeMs });
  const prepared = await prepareSandbox({ store: host.store, provider }, { task, files }, report, signal);
  const evaluation = { ...input, task, number, report, provider, files, ownFiles, ...prepared, solve: false };
  if (input.reuseVerdict !== true) return evaluateUncached(host, evaluation, signal);
  const key = verdictKey({ ...input, imageId: await contentOf(provider, prepared), kind: provider.kind });
  const known = key === null ? null : await host.verdicts.find(key);
  if (known !== null) return known;
  const verdict = await evaluateUncached(host, evaluation, signal);
  if (key !== null) await host.verdicts.keep(key, verdict);
  return verdict;
}

/** The failure of an evaluation that has nothing to judge but the agent's sandbox, which is gone. */
const needsItsSandbox = (id: string): TemperFailure =>
  new TemperFailure(
    'UnsupportedTask',
    `the tests of task ${id} run in the agent's own sandbox (grading.sandbox = "same"), which no one keeps; a diff alone cannot be graded by them`,
  );

async function evaluateUncached(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Verdict> {
  const judged = await judgeInFreshSandbox(host, input, signal);
  const isLasting = await requireHosts(host, input, judged, signal);
  return attribute(host, input, isLasting ? judged : await judgeAgain(host, input, signal), signal);
}
