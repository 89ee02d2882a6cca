import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import { isSolved, rewardOf } from '../../workflows/algorithms/reward.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Flag } from '../../workflows/contracts/flags.ts';
import { isRemote } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { solutionsAnswer } from './answer.ts';
import { emptyDiff } from './capture/capture-diff.ts';
import type { Evaluation, EvaluationHost } from './evaluation.ts';
import { blamed } from './evidence/blame.ts';
import { type Evidence, referenceTells, ruleOf, shared } from './evidence/evidence.ts';
import type { KnownRun } from './evidence/known-runs.ts';
import { judgeAgain } from './judge-in-fresh-sandbox.ts';
import type { Judged } from './judged.ts';
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
  if (host.knownRuns.solvable.has(without)) return true;
  const reference = (await judgeReference(host, input, signal)).verdict;
  const asked = await askedHosts(host.store, reference);
  const still = asked.unreached.filter((one) => lacking.includes(one));
  if (still.length === 0) return !asked.reached.some((one) => lacking.includes(one));
  if (isSolved(reference)) {
    if (still.length === lacking.length) host.knownRuns.solvable.add(without);
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
 * Returns a verdict, unless the task or the host is to blame for it, which only fresh sandboxes without the agent's work can tell:
 * they show the same. The tests run there once for each task and kind of sandbox. A verdict for which they are not to blame is
 * flagged, since the agent may have caused or printed what it shows. Throws the failure of the evidence.
 */
export async function attribute(
  host: EvaluationHost,
  input: Evaluation,
  judged: Judged,
  signal: AbortSignal,
): Promise<Verdict> {
  const { verdict, evidence } = judged;
  requireDisk(host, input, evidence);
  for (const needsReference of [false, true]) {
    const alike = evidence.filter(({ kind }) => ruleOf(kind).needsReference === needsReference);
    const [shown] = await shownWithoutWork(host, input, { judged, alike, needsReference }, signal);
    if (shown === undefined) continue;
    const { type, remedy } = ruleOf(shown.kind);
    const where = `over the untouched workspace${needsReference ? ' and with its reference solution' : ''}`;
    const text = `the tests of task ${input.task.id} cannot pass: ${shown.text}, also ${where}; ${remedy}`;
    throw new TemperFailure(type(input.provider.programs), text);
  }
  return withFlags(verdict, [...claimed(evidence), ...(await untouched(host, input, verdict))]);
}

/** Throws DiskFull if the tests report a full disk, and that of this host is full. Other hosts' nodes end sandboxes then. */
function requireDisk(host: EvaluationHost, { provider }: Evaluation, evidence: readonly Evidence[]): void {
  if (isRemote(provider.kind) || !evidence.some(({ kind }) => kind === 'full-disk') || !host.isDiskFull()) return;
  throw new TemperFailure(
    'DiskFull',
    'the tests report a full disk, and the disk of this host is full; free some space',
  );
}

interface Alike {
  readonly judged: Judged;
  /** Evidence that the same runs have to show. */
  readonly alike: readonly Evidence[];
  readonly needsReference: boolean;
}

/** Returns the evidence that the tests show without the agent's work, too. */
async function shownWithoutWork(
  host: EvaluationHost,
  input: Evaluation,
  { judged, alike, needsReference }: Alike,
  signal: AbortSignal,
): Promise<readonly Evidence[]> {
  const { task, ownFiles } = input;
  if (alike.length === 0) return [];
  if (needsReference && (ownFiles.solution.size === 0 || ownFiles.testImage !== null || !referenceTells(task)))
    return [];
  const run = (what: 'untouched' | 'reference' | 'reference again', judge: () => Promise<Judged>) =>
    host.knownRuns.get(runKey(input, what), async () => knownOf(await judge()), signal);
  const solve = () => judgeReference(host, input, signal);
  const without = await withoutWork(host, input);
  const references = needsReference ? [await run('reference', solve)] : [];
  const both = references.reduce<readonly Evidence[]>((left, one) => shared(left, one.evidence), alike);
  if (both.length === 0) return [];
  const isUntouched = isWithoutWork(input, without);
  const unworked = isUntouched ? knownOf(judged) : await run('untouched', () => judgeAgain(host, without, signal));
  const { reward } = knownOf(judged);
  const found = blamed(both, { reward, untouched: unworked, references });
  if (found.length === 0 || !needsReference) return found;
  // One failure of a solution may be chance.
  return blamed(found, { reward, untouched: unworked, references: [await run('reference again', solve)] });
}

const knownOf = ({ verdict, evidence }: Judged): KnownRun => ({
  reward: rewardOf(verdict, 'fail-to-pass'),
  isSolved: isSolved(verdict),
  cutBy: verdict.kind === 'timeout' ? 'time' : verdict.flags?.some(({ trick }) => trick === 'limit') ? 'limit' : null,
  evidence,
});

/** Names a run without the agent's work by all that decides on it. */
const runKey = ({ task, image, provider, timeoutMs, files, ownFiles, answer }: Evaluation, what: string): string =>
  [what, solutionKey(task), image, provider.kind, timeoutMs, files === ownFiles ? (answer?.digest ?? '') : ''].join(
    ' ',
  );

const claimed = (evidence: readonly Evidence[]): readonly Flag[] =>
  evidence.filter(({ kind }) => ruleOf(kind).flags).map(({ text }) => ({ trick: 'claimed-fault', evidence: text }));

/** Returns the flag of a full reward for the untouched workspace, which the task gives to every agent. */
async function untouched(host: EvaluationHost, input: Evaluation, verdict: Verdict): Promise<readonly Flag[]> {
  if (!isSolved(verdict) || !isWithoutWork(input, await withoutWork(host, input))) return [];
  return [{ trick: 'untouched', evidence: 'the agent changed nothing that its tests got' }];
}

const withFlags = (verdict: Verdict, flags: readonly Flag[]): Verdict =>
  flags.length === 0 ? verdict : { ...verdict, flags: firstOfEach([...(verdict.flags ?? []), ...flags]) };

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
