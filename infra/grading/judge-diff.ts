import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import { rewardOf } from '../../workflows/algorithms/reward.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Store } from '../store/store.ts';
import { flagEvaluation } from './flags/evaluation.ts';
import { retryLate } from './late.ts';
import { applyProtected, protectionInWorkspace } from './protection/apply-protected.ts';
import type { Protection } from './protection/rules.ts';
import type { GradedTask } from './task.ts';
import { missingPrograms } from './tests/missing-programs.ts';
import { runLoggedTests } from './tests/run-logged-tests.ts';
import { runRewardedTests } from './tests/run-rewarded-tests.ts';
import { type NetworkedCommands, offline } from './tests/test-network.ts';
import type { TestRun, TestsToRun } from './tests/test-run.ts';
import { toVerdict } from './verdict.ts';
import { placeHiddenTests } from './workspace/hidden-tests.ts';
import { initialDiskMb } from './workspace/prepare-workspace.ts';

export const tooLarge =
  'its patch is above 16 MB, the changed files above 128 MB, its new files above 20,000, or git took longer than two minutes twice';

export interface DiffToJudge {
  readonly task: GradedTask;
  readonly diff: Diff;
  readonly workdir: string;
  readonly diskMb: number;
  readonly timeoutMs: number;
  /** PATH of the tests; null keeps the sandbox's own. */
  readonly path: string | null;
  /** The network of the tests. Default: none. */
  readonly network?: NetworkedCommands | undefined;
  /** Digest of what the verdict is about. */
  readonly subject: string;
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
}

export interface Judged {
  readonly verdict: Verdict;
  /**
   * The invalid reward that the tests wrote, described; null if it was valid or missing. Its verdict is worth 0 and flagged.
   * One evaluation cannot say whether the task or the diff caused it.
   */
  readonly invalidReward: string | null;
  /**
   * The programs that the log reports as missing; empty for a full reward. One evaluation cannot say whether the host lacks
   * them or the task does: the code under test may print anything.
   */
  readonly missing: readonly string[];
}

/** Applies a diff in a sandbox whose workspace is at the base commit, and runs the hidden tests over it. */
export async function judgeDiff(
  sandbox: Sandbox,
  store: Store,
  input: DiffToJudge,
  signal: AbortSignal,
): Promise<Judged> {
  const { task, diff, workdir, timeoutMs, path, network, subject, attempt } = input;
  const patch = await store.get(diff.patch.digest);
  const protection = await protectionInWorkspace(sandbox, { workdir, patch, protection: task.protection }, signal);
  const { applied, refusal, restored, timedOut } = diff.tooLarge
    ? { applied: null, refusal: tooLarge, restored: null, timedOut: false }
    : await applyProtected(sandbox, { workdir, patch, protection }, signal);
  retryLate({ timedOut }, attempt);
  if (applied === null) return patchFailed(store, { patch, protection, subject, refusal });
  await placeHiddenTests(sandbox, task, workdir, signal);
  const diskBeforeMb = await initialDiskMb(sandbox, task.workspace, input.diskMb);
  const run = await runTests(sandbox, task, { workdir, timeoutMs, diskBeforeMb, path, network }, signal);
  const flags = flagEvaluation(patch, protection, run);
  const verdict = { ...(await toVerdict(store, run, { subject, flags })), applied, restored };
  const missing = rewardOf(verdict, 'binary') === 1 ? [] : missingPrograms(run.log.toString('utf8'));
  return { verdict, invalidReward: run.invalidReward ?? null, missing };
}

export interface FailedPatch {
  readonly patch: Uint8Array;
  readonly protection: Protection;
  readonly subject: string;
  readonly refusal: string;
}

/** Returns the verdict on a diff that does not apply, or that cannot be taken back where it has to be. */
export async function patchFailed(store: Store, { patch, protection, subject, refusal }: FailedPatch): Promise<Judged> {
  const log = Buffer.from(`The diff does not apply:\n${refusal}\n`);
  const flags = flagEvaluation(patch, protection, null);
  const failed = { kind: 'patch-failed', value: null, exitCode: null, log } as const;
  return { verdict: await toVerdict(store, failed, { subject, flags }), invalidReward: null, missing: [] };
}

/** Returns the verdict on a diff whose code ended the sandbox of its evaluation; `evidence` describes how. */
export async function verdictOfEnded(
  store: Store,
  { task, diff, subject }: Pick<DiffToJudge, 'task' | 'diff' | 'subject'>,
  evidence: string,
): Promise<Verdict> {
  const log = Buffer.from(`The solution brought the sandbox of its evaluation down: ${evidence}\n`);
  const patch = await store.get(diff.patch.digest);
  const ended = { trick: 'limit', evidence: `the evaluation's sandbox was brought down: ${evidence}` } as const;
  const flags = firstOfEach([...flagEvaluation(patch, task.protection, null), ended]);
  return toVerdict(store, { kind: 'no-reward', value: null, exitCode: null, log }, { subject, flags });
}

interface TestOptions extends Omit<TestsToRun, 'task' | 'env' | 'network' | 'codeEnv'> {
  /** PATH of the tests; null keeps the sandbox's own. */
  readonly path: string | null;
  readonly network?: NetworkedCommands | undefined;
}

/**
 * Runs the hidden tests in a sandbox whose workspace holds the patch. They are copied in only now. A timeout, a missing or
 * invalid reward and an implausible log are data, not failures.
 */
export async function runTests(
  sandbox: Sandbox,
  task: GradedTask,
  { path, network = offline, ...options }: TestOptions,
  signal: AbortSignal,
): Promise<TestRun> {
  const pathEnv = path === null ? {} : { PATH: path };
  const codeEnv = { ...task.env, ...pathEnv };
  const tests = { ...options, task, env: { ...task.env, ...task.testEnv, ...pathEnv }, network, codeEnv };
  return task.grading === null
    ? runRewardedTests(sandbox, tests, signal)
    : runLoggedTests(sandbox, tests, task.grading, signal);
}
