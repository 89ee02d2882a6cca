import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Store } from '../store/store.ts';
import { type Judged, judgeRefused, judgeRun } from './judged.ts';
import { retryLate } from './late.ts';
import { parseBase, readBase } from './programs/base-programs.ts';
import { restorePrograms } from './programs/restore-programs.ts';
import { runnerPackages } from './programs/runner-packages.ts';
import { applyProtected, protectionInWorkspace } from './protection/apply-protected.ts';
import type { GradedTask } from './task.ts';
import { runLoggedTests } from './tests/run-logged-tests.ts';
import { runRewardedTests } from './tests/run-rewarded-tests.ts';
import { type NetworkedCommands, offline } from './tests/test-network.ts';
import type { TestRun, TestsToRun } from './tests/test-run.ts';
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

/** Applies a diff in a sandbox whose workspace is at the base commit, and runs the hidden tests over it. */
export async function judgeDiff(
  sandbox: Sandbox,
  store: Store,
  input: DiffToJudge,
  signal: AbortSignal,
): Promise<Judged> {
  const { task, diff, workdir, timeoutMs, path, network, subject, attempt } = input;
  const patch = await store.get(diff.patch.digest);
  const base = await parseBase(await readBase(sandbox, { task, workdir, path }, signal));
  const paths = [...task.protection.paths, ...runnerPackages(base, patch)];
  const given = { ...task.protection, paths };
  const protection = await protectionInWorkspace(sandbox, { workdir, patch, protection: given }, signal);
  const { applied, refusal, restored, timedOut } = diff.tooLarge
    ? { applied: null, refusal: tooLarge, restored: null, timedOut: false }
    : await applyProtected(sandbox, { workdir, patch, protection }, signal);
  retryLate({ timedOut }, attempt);
  if (applied === null) return judgeRefused(store, refusal, { patch, protection, subject, beyond: diff.flags ?? [] });
  const { refusal: ofPrograms, flags: beyond } = await restorePrograms(sandbox, { base, task, attempt }, signal);
  if (ofPrograms !== null) return judgeRefused(store, ofPrograms, { patch, protection, subject, beyond });
  await placeHiddenTests(sandbox, task, workdir, signal);
  const diskBeforeMb = await initialDiskMb(sandbox, task.workspace, input.diskMb);
  const run = await runTests(sandbox, task, { workdir, timeoutMs, attempt, diskBeforeMb, path, network }, signal);
  return judgeRun(store, run, { patch, protection, subject, beyond }, { applied, restored });
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
