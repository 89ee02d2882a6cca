import { isSolved } from '../../workflows/algorithms/reward.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { solutionsAnswer } from './answer.ts';
import { emptyDiff } from './capture/capture-diff.ts';
import type { Evaluation, EvaluationHost } from './evaluation.ts';
import { judgeAgain } from './judge-in-fresh-sandbox.ts';
import type { Fault, Judged } from './judged.ts';
import { isStored } from './snapshot/archive.ts';
import { askedHosts, unreachedHosts } from './tests/unreached.ts';

/**
 * Throws NetworkUnavailable if the tests could not reach a host that the task allows, and the task's reference solution fails for
 * it, too. That is the evidence, since the code under test may ask for any host. Returns false if the reference solution now
 * reaches such a host, so that the tests should run again.
 */
export async function requireHosts(
  host: EvaluationHost,
  input: Evaluation,
  { verdict }: Judged,
  signal: AbortSignal,
): Promise<boolean> {
  const lacking = await unreachedHosts(host.store, verdict);
  if (lacking.length === 0 || input.files.solution.size === 0 || isSolved(verdict)) return true;
  // Tests that always ask for a host which they do without cost this once, and not once for each rollout.
  const without = [solutionKey(input.task), 'without', ...lacking.toSorted()].join(' ');
  if (host.solvable.has(without)) return true;
  const reference = (await judgeReference(host, input, signal)).verdict;
  const asked = await askedHosts(host.store, reference);
  const still = asked.unreached.filter((one) => lacking.includes(one));
  if (still.length === 0) return !asked.reached.some((one) => lacking.includes(one));
  if (isSolved(reference)) {
    if (still.length === lacking.length) host.solvable.add(without);
    return true;
  }
  throw new TemperFailure(
    'NetworkUnavailable',
    `the tests of task ${input.task.id} could not reach ${still.join(', ')} from this host, and could not with its reference solution either; check the network of this host, whether these addresses still exist, and whether their names lead to public addresses; temper will retry the evaluation`,
  );
}

/** Names what is known of a task's reference solution, or of that of its step. */
const solutionKey = ({ bundle, step = 1 }: Task): string => `${bundle.digest} ${step}`;

/** Judges the task's reference solution in a fresh sandbox without the diff. */
async function judgeReference(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Judged> {
  const untouched = await withoutWork(host, input);
  return judgeAgain(host, { ...untouched, files: solutionsAnswer(untouched.files), solve: true }, signal);
}

/**
 * Returns a verdict, unless the task or the host is to blame for it, which only fresh sandboxes without the agent's work can
 * tell. Throws InvalidReward, SetupFailed and MissingProgram.
 */
export async function attribute(
  host: EvaluationHost,
  input: Evaluation,
  { verdict, fault, missing }: Judged,
  signal: AbortSignal,
): Promise<Verdict> {
  if (missing.length > 0 && input.provider.programs === 'host') await requirePrograms(host, input, missing, signal);
  if (fault === null) return verdict;
  // The work may have caused it. Blame the task only if the same happens without any work.
  const without = await withoutWork(host, input);
  const untouched = isWithoutWork(input, without) ? fault : (await judgeAgain(host, without, signal)).fault;
  if (untouched?.type !== fault.type) return verdict;
  throw new TemperFailure(fault.type, `${untouched.evidence}; ${remedies[fault.type]}`);
}

const remedies: Readonly<Record<Fault['type'], string>> = {
  InvalidReward: "they also write it over the untouched workspace, so correct the task's tests/test.sh",
  SetupFailed: 'the same holds for the untouched workspace, so make its files readable for all in the image',
};

/**
 * Throws MissingProgram if this host lacks a program that the tests report as missing. The report may come from the code under
 * test, and a program may be the agent's to provide. So the evidence is the task's reference solution, in a fresh sandbox
 * without the diff: it fails here, too, and its tests report the same program. Without a solution there is no such evidence.
 */
async function requirePrograms(
  host: EvaluationHost,
  input: Evaluation,
  missing: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { task, files } = input;
  const key = solutionKey(task);
  if (files.solution.size === 0 || host.solvable.has(key)) return;
  const reference = await judgeReference(host, input, signal);
  if (isSolved(reference.verdict)) host.solvable.add(key);
  const lacking = missing.filter((name) => reference.missing.includes(name));
  if (lacking.length === 0) return;
  throw new TemperFailure(
    'MissingProgram',
    `the tests of task ${task.id} do not find ${lacking.join(', ')}, also with its reference solution: a local sandbox has this host's programs instead of those of the image ${task.image}; install what is missing on this host, or use a Docker sandbox`,
  );
}

/** Returns an evaluation of the task in a fresh sandbox without anything that an agent has left: no diff, files or answer. */
async function withoutWork({ store }: EvaluationHost, { snapshot: _, ...input }: Evaluation): Promise<Evaluation> {
  return { ...input, files: input.ownFiles, diff: await emptyDiff(store, input.diff.baseCommit) };
}

/** Whether an evaluation had no work of an agent. One in the agent's own sandbox never counts as such. */
const isWithoutWork = ({ files, ownFiles, diff, snapshot }: Evaluation, without: Evaluation): boolean =>
  files.gradedIn !== 'same' &&
  files.tests === ownFiles.tests &&
  diff.patch.digest === without.diff.patch.digest &&
  (snapshot === undefined || (snapshot.entries === 0 && isStored(snapshot)));
