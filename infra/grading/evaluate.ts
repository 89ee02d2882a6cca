import { rewardOf } from '../../workflows/algorithms/reward.ts';
import type { EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { evaluationSandboxName } from '../../workflows/contracts/ids.ts';
import { evaluationMarginMs, preparationMs } from '../../workflows/contracts/stage-limits.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { ensureSandbox } from '../sandbox/ensure-sandbox.ts';
import { SandboxFailure, wasEndedInside } from '../sandbox/failure.ts';
import type { BuildContext, ReportImage } from '../sandbox/image.ts';
import type { Providers } from '../sandbox/index.ts';
import { mergeMounts } from '../sandbox/mount.ts';
import { contentOf, type PreparedSandbox, prepareSandbox } from '../sandbox/prepare-image.ts';
import type { SandboxKind, SandboxMount, SandboxProvider } from '../sandbox/sandbox.ts';
import { type SandboxOwner, sandboxSpec } from '../sandbox/sandbox-request.ts';
import type { Beside, TaskService } from '../sandbox/service.ts';
import type { Store } from '../store/store.ts';
import { withTimeLimit } from '../time-limit.ts';
import { solutionsAnswer, withAnswer } from './answer.ts';
import { judgeArtifacts } from './artifacts/judge-artifacts.ts';
import { filesOfTests, taskOfTests } from './artifacts/test-image.ts';
import { emptyDiff } from './capture/capture-diff.ts';
import { type Judged, judgeDiff, verdictOfEnded } from './judge-diff.ts';
import { judgeSnapshot } from './snapshot/judge-snapshot.ts';
import { solve } from './solve.ts';
import { subjectOf } from './subject.ts';
import type { GradedTask } from './task.ts';
import { testDirectory } from './tests/run-logged-tests.ts';
import { type TestNetwork, withNetwork } from './tests/test-network.ts';
import { testAccount } from './tests/test-process.ts';
import { askedHosts, unreachedHosts } from './tests/unreached.ts';
import { type VerdictCache, verdictKey } from './verdict-cache.ts';
import { prepareWorkspace, workspaceFiles } from './workspace/prepare-workspace.ts';

/** A graded task together with the content of its image. */
type EvaluatedTask = GradedTask & {
  readonly build: BuildContext | null;
  readonly beside: Beside<TaskService> | null;
};

/** The parts of a host that an evaluation uses. */
export interface EvaluationHost extends SandboxOwner {
  readonly store: Store;
  readonly verdicts: VerdictCache;
  /** Tasks and steps whose reference solution is known to have the full reward on this host, also without which network hosts. */
  readonly solvable: Set<string>;
  readonly tasks: { open(task: Task): Promise<EvaluatedTask> };
  readonly choose: Providers['choose'];
  /** Runtimes that the tests need and the image lacks. */
  evaluationMounts(kind: SandboxKind): Promise<readonly SandboxMount[]>;
  /** PATH for commands in a sandbox of this kind; null keeps the sandbox's own. */
  pathOf(kind: SandboxKind): string | null;
  /** Opens the network of a task's tests; undefined if they get none. Throws UnsupportedTask if they need more than this host allows. */
  testNetwork(
    task: Task,
    where: { readonly sandbox: string; readonly channels: SandboxProvider['channels'] },
  ): Promise<TestNetwork | undefined>;
}

/** One activity attempt of an evaluation. */
export interface EvaluationTry {
  /** The number of the activity attempt, from 1. */
  readonly number: number;
  readonly report: ReportImage;
}

/** Judges a diff in a fresh sandbox. The verdict depends on diff, task and image alone, so an evaluation may be repeated. */
export async function evaluate(
  host: EvaluationHost,
  input: EvaluationRequest,
  { number, report }: EvaluationTry,
  signal: AbortSignal,
): Promise<Verdict> {
  const task = taskOfTests(input.task);
  const files = await withAnswer(host.store, filesOfTests(await host.tasks.open(task)), input.answer);
  if (files.gradedIn === 'same') throw needsItsSandbox(task.id);
  const lifetimeMs = input.timeoutMs + evaluationMarginMs;
  const choice = input.snapshot?.kind ?? input.sandbox;
  const provider = await host.choose(choice, task, { filesInImage: files.workspace.size === 0, lifetimeMs });
  const prepared = await prepareSandbox({ store: host.store, provider }, { task, files }, report, signal);
  const evaluation = { ...input, task, number, report, provider, files, ...prepared, solve: false };
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

export interface Evaluation extends EvaluationRequest, EvaluationTry, PreparedSandbox {
  readonly provider: SandboxProvider;
  readonly files: EvaluatedTask;
  /** Whether the reference solution is applied before the diff. */
  readonly solve: boolean;
}

async function evaluateUncached(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Verdict> {
  const judged = await judgeInFreshSandbox(host, input, signal);
  const isLasting = await requireHosts(host, input, judged, signal);
  return attribute(host, input, isLasting ? judged : await judgeInFreshSandbox(host, input, signal), signal);
}

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
  if (lacking.length === 0 || input.files.solution.size === 0 || rewardOf(verdict, 'binary') === 1) return true;
  // Tests that always ask for a host which they do without cost this once, and not once for each rollout.
  const without = [solutionKey(input.task), 'without', ...lacking.toSorted()].join(' ');
  if (host.solvable.has(without)) return true;
  const reference = (await judgeReference(host, input, signal)).verdict;
  const asked = await askedHosts(host.store, reference);
  const still = asked.unreached.filter((one) => lacking.includes(one));
  if (still.length === 0) return !asked.reached.some((one) => lacking.includes(one));
  if (rewardOf(reference, 'binary') === 1) {
    if (still.length === lacking.length) host.solvable.add(without);
    return true;
  }
  throw new TemperFailure(
    'NetworkUnavailable',
    `the tests of task ${input.task.id} could not reach ${still.join(', ')} from this host, and could not with its reference solution either; check the network of this host, and whether these addresses still exist; the evaluation is retried`,
  );
}

/** Names what is known of a task's reference solution, or of that of its step. */
const solutionKey = ({ bundle, step = 1 }: Task): string => `${bundle.digest} ${step}`;

/** Judges the task's reference solution in a fresh sandbox without the diff. */
async function judgeReference(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Judged> {
  const diff = await emptyDiff(host.store, input.diff.baseCommit);
  const solved = { ...input, files: solutionsAnswer(input.files), diff, solve: true };
  return judgeInFreshSandbox(host, withoutSnapshot(solved), signal);
}

/**
 * Returns a verdict, unless the task or the host is to blame for it, which only fresh sandboxes without the agent's work can
 * tell. Throws InvalidReward and MissingProgram.
 */
export async function attribute(
  host: EvaluationHost,
  input: Evaluation,
  { verdict, invalidReward, missing }: Judged,
  signal: AbortSignal,
): Promise<Verdict> {
  if (missing.length > 0 && input.provider.programs === 'host') await requirePrograms(host, input, missing, signal);
  if (invalidReward === null) return verdict;
  // Agent code can make the tests write an invalid reward. Blame the task only if it also does so on an untouched workspace.
  const diff = await emptyDiff(host.store, input.diff.baseCommit);
  const untouched =
    diff.patch.digest === input.diff.patch.digest
      ? invalidReward
      : (await judgeInFreshSandbox(host, withoutSnapshot({ ...input, diff }), signal)).invalidReward;
  if (untouched === null) return verdict;
  throw new TemperFailure(
    'InvalidReward',
    `${untouched}; they also write it over the untouched workspace, so correct the task's tests/test.sh`,
  );
}

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
  if (rewardOf(reference.verdict, 'binary') === 1) host.solvable.add(key);
  const lacking = missing.filter((name) => reference.missing.includes(name));
  if (lacking.length === 0) return;
  throw new TemperFailure(
    'MissingProgram',
    `the tests of task ${task.id} do not find ${lacking.join(', ')}, also with its reference solution: a local sandbox has this host's programs instead of those of the image ${task.image}; install what is missing on this host, or use a Docker sandbox`,
  );
}

const withoutSnapshot = ({ snapshot: _, ...evaluation }: Evaluation): Evaluation => evaluation;

/** Judges the diff or the snapshot in a sandbox that is removed afterwards. */
async function judgeInFreshSandbox(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Judged> {
  const { provider, timeoutMs, number } = input;
  const nameOf = (activityAttempt: number): string =>
    evaluationSandboxName(input.epoch, activityAttempt, input.task.step);
  // Earlier activity attempts may have left half-made sandboxes.
  for (let earlier = 1; earlier < number; earlier += 1) await provider.remove(nameOf(earlier));
  const name = nameOf(number);
  const limitMs = timeoutMs + preparationMs;
  const late = new TemperFailure(
    'EvaluationTimedOut',
    `evaluation ${name} took longer than ${limitMs / 1000} s, so the host may be overloaded; the evaluation is retried`,
  );
  const network = await host.testNetwork(input.task, { sandbox: name, channels: provider.channels });
  try {
    const limited = { ...input, network };
    const judged = await withTimeLimit({ limitMs, late }, (ending) => judge(host, limited, name, ending), signal);
    return withNetwork(judged, await network?.end());
  } catch (error) {
    if (!(error instanceof SandboxFailure)) throw error;
    if (!wasEndedInside(error)) throw retryable(error);
    const ended = { task: input.files, diff: input.diff, subject: subjectOf(input) };
    const verdict = await verdictOfEnded(host.store, ended, error.message);
    return withNetwork({ verdict, invalidReward: null, missing: [] }, await network?.end());
  } finally {
    network?.close();
    await provider.remove(name);
    await network?.remove();
  }
}

/** Makes the loss of an evaluation's sandbox retryable: the agent's work is safe in the store, so no rollout is lost. */
function retryable(error: SandboxFailure): Error {
  if (error.type !== 'SandboxLost' && error.type !== 'SandboxConflict') return error;
  return new TemperFailure('SandboxUnavailable', `the evaluation lost its sandbox: ${error.message}`, { cause: error });
}

type NetworkedEvaluation = Evaluation & { readonly network: TestNetwork | undefined };

async function judge(
  host: EvaluationHost,
  input: NetworkedEvaluation,
  name: string,
  signal: AbortSignal,
): Promise<Judged> {
  const { epoch, run, task, diff, snapshot, timeoutMs, provider, files, image, beside, network, report } = input;
  const { workdir, diskMb } = task;
  const spec = sandboxSpec(host, {
    name,
    epoch,
    run,
    task,
    image,
    beside,
    purpose: 'evaluation',
    sweep: false,
    expiresAtMs: Date.now() + timeoutMs + evaluationMarginMs,
    mounts: mergeMounts(await host.evaluationMounts(provider.kind), network?.mounts ?? []),
    gatewayDir: null,
    ...(network !== undefined && { channel: network.channel }),
    files: [...workspaceFiles(files, workdir), ...testDirectory(files)],
  });
  const sandbox = await ensureSandbox(provider, { ...spec, report }, signal);
  const path = host.pathOf(provider.kind);
  const subject = subjectOf(input);
  const judged = { task: files, diff, workdir, diskMb, timeoutMs, path, network: network?.commands, subject };
  if (files.testImage !== null) {
    network?.carry(sandbox, testAccount(files));
    return judgeArtifacts(sandbox, host.store, { ...judged, artifacts: snapshot }, signal);
  }
  const { baseCommit } = await prepareWorkspace(
    sandbox,
    files,
    { workdir, placed: true, keep: false, hiddenTests: true },
    signal,
  );
  requireSameBase(input, baseCommit);
  if (input.solve) await solve(sandbox, files, { workdir, path }, signal);
  network?.carry(sandbox, testAccount(files));
  return snapshot === undefined
    ? judgeDiff(sandbox, host.store, judged, signal)
    : judgeSnapshot(sandbox, host.store, { ...judged, snapshot }, signal);
}

/**
 * Throws SetupFailed if the base commit differs from the agent's. The agent cannot cause that: its own base commit was made
 * before it started, and this one in a fresh sandbox.
 */
function requireSameBase({ diff, task }: Pick<EvaluationRequest, 'diff' | 'task'>, baseCommit: string): void {
  if (diff.baseCommit === baseCommit) return;
  throw new TemperFailure(
    'SetupFailed',
    `the set-up of task ${task.id} produced different files than before: base commit ${diff.baseCommit} for the agent, ${baseCommit} for its evaluation; make it write nothing that changes, such as the time; a regrade with repaired tasks needs their workspace and set-up unchanged`,
  );
}
