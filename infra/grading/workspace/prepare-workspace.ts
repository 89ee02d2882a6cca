import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';
import { commitScript } from './base-commit-script.ts';
import { gatherHiddenTests } from './hidden-tests.ts';
import { keepBase } from './kept-base.ts';
import { requireSuccess } from './require-success.ts';

/** For all of a task's own commands together. The stages have room for it. */
const setupTimeoutMs = 300_000;
const gitTimeoutMs = 120_000;
const outputBytes = 64 * 1024;

const gitEnv = {
  GIT_AUTHOR_DATE: '2000-01-01T00:00:00Z',
  GIT_COMMITTER_DATE: '2000-01-01T00:00:00Z',
} as const;

export interface WorkspaceOptions {
  readonly workdir: string;
  /** Where a diff will be taken. */
  readonly keep: boolean;
  /** For an evaluation: gathers the hidden tests, which no agent's sandbox may hold. */
  readonly hiddenTests?: boolean;
  /** For all of the task's own commands together; a test's way to have less of it. */
  readonly setupMs?: number;
}

/** The workspace of a task at its base commit. Throws SetupFailed; what was broken off is begun again in a fresh sandbox. */
export async function prepareWorkspace(
  sandbox: Sandbox,
  task: GradedTask,
  { workdir, keep, hiddenTests = false, setupMs = setupTimeoutMs }: WorkspaceOptions,
  signal: AbortSignal,
): Promise<{ readonly baseCommit: string }> {
  if (task.workspace.size > 0) await sandbox.putFiles({ tree: task.workspace, at: workdir, owner: 'agent' }, signal);
  const deadlineMs = Date.now() + setupMs;
  await removeFromImage(sandbox, task, signal);
  const asAgent = { account: 'agent', cwd: workdir, maxOutputBytes: outputBytes } as const;
  for (const command of task.setup) {
    const argv = ['bash', '-c', command] as const;
    const timeoutMs = Math.max(1, deadlineMs - Date.now());
    const done = await sandbox.exec({ ...asAgent, argv: [...argv], env: task.env, timeoutMs }, signal);
    requireSuccess(done, `set-up command ${JSON.stringify(command.slice(0, 120))}`);
  }
  if (hiddenTests) await gatherHiddenTests(sandbox, task, { workdir, deadlineMs }, signal);
  const commit = await sandbox.exec(
    { ...asAgent, argv: ['sh', '-c', commitScript], env: gitEnv, timeoutMs: gitTimeoutMs },
    signal,
  );
  requireSuccess(commit, `the base commit in ${workdir}`);
  const baseCommit = commit.stdout.toString('utf8').trim().split('\n').at(-1) ?? '';
  if (!/^[0-9a-f]{40,64}$/.test(baseCommit)) {
    throw new TemperFailure('SetupFailed', `expected a commit id in ${workdir}, got ${JSON.stringify(baseCommit)}`);
  }
  if (keep) await keepBase(sandbox, workdir, signal);
  return { baseCommit };
}

/** What an image holds beside the workdir is its root's. */
async function removeFromImage(sandbox: Sandbox, { remove }: GradedTask, signal: AbortSignal): Promise<void> {
  if (remove.length === 0) return;
  const argv = ['rm', '-rf', '--', ...remove] as const;
  const limits = { timeoutMs: gitTimeoutMs, maxOutputBytes: outputBytes };
  const removed = await sandbox.exec({ account: 'grader', cwd: '/', argv, env: {}, ...limits }, signal);
  requireSuccess(removed, `removing ${remove.join(' ')}`);
}

/** The workspace's files exist twice more: in the copy of the base commit, and in the workspace's repository. */
const copies = 3;
/** The share of the disk limit below which the disk is not measured. */
const negligible = 1 / 20;

/**
 * Returns the MB on a sandbox's disk before the policy's work begins: the task's files and the copies of them, for which
 * neither an agent nor its tests may be ended. 0 if that is negligible.
 */
export async function initialDiskMb(
  sandbox: Pick<Sandbox, 'diskUsage'>,
  workspace: FileTree,
  limitMb: number,
): Promise<number> {
  const bytes = [...workspace.values()].reduce((sum, file) => sum + file.bytes.byteLength, 0);
  const inImage = workspace.size === 0;
  if (!inImage && (bytes * copies) / 2 ** 20 < limitMb * negligible) return 0;
  return (await sandbox.diskUsage()).usedMb;
}
