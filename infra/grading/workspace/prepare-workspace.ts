import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import { inImage } from '../../sandbox/image-environment.ts';
import type { PutFiles, Sandbox } from '../../sandbox/sandbox.ts';
import { keepPrograms } from '../programs/kept-programs.ts';
import type { GradedTask } from '../task.ts';
import { commitScript, lacksPrograms } from './base-commit-script.ts';
import { requireEntrypoint, startEntrypoint } from './entrypoint.ts';
import { awaitHealthy } from './health-check.ts';
import { gatherHiddenTests } from './hidden-tests.ts';
import { keepBase } from './kept-base.ts';
import { requireSuccess, requireTaskSuccess } from './require-success.ts';

/** Limit of all of a task's own commands together; the stages have time for it. */
const setupTimeoutMs = 300_000;
const gitTimeoutMs = 120_000;
const outputBytes = 64 * 1024;

const gitEnv = {
  GIT_AUTHOR_DATE: '2000-01-01T00:00:00Z',
  GIT_COMMITTER_DATE: '2000-01-01T00:00:00Z',
} as const;

export interface WorkspaceOptions {
  readonly workdir: string;
  /** Whether the sandbox was made with `workspaceFiles`. */
  readonly placed?: boolean;
  /** Whether to keep the base commit, so that a diff can be captured. */
  readonly keep: boolean;
  /** Whether to gather the hidden tests: in evaluations only, since no agent's sandbox may contain them. */
  readonly hiddenTests?: boolean;
  /** Limit of all of the task's own commands together. Only tests set it; default: 300 s. */
  readonly setupMs?: number;
}

/** Returns the task's files as the sandbox is to be made with; none if its image brings them. */
export function workspaceFiles({ workspace }: Pick<GradedTask, 'workspace'>, workdir: string): readonly PutFiles[] {
  return workspace.size === 0 ? [] : [{ tree: workspace, at: workdir, owner: 'agent' }];
}

/**
 * Prepares the workspace of a task at its base commit. Throws SetupFailed or SandboxUnavailable. After an interruption it has
 * to start again in a fresh sandbox.
 */
export async function prepareWorkspace(
  sandbox: Sandbox,
  task: GradedTask,
  { workdir, keep, placed = false, hiddenTests = false, setupMs = setupTimeoutMs }: WorkspaceOptions,
  signal: AbortSignal,
): Promise<{ readonly baseCommit: string }> {
  for (const files of placed ? [] : workspaceFiles(task, workdir)) await sandbox.putFiles(files, signal);
  const deadlineMs = performance.now() + setupMs;
  await removePaths(sandbox, task.remove, signal);
  await startEntrypoint(sandbox, task, workdir, signal);
  if (task.healthCheck !== null) {
    await awaitHealthy(sandbox, task.healthCheck, { workdir, env: task.env, deadlineMs }, signal);
  }
  const asAgent = { account: 'agent', cwd: workdir, maxOutputBytes: outputBytes } as const;
  for (const command of task.setup) {
    const timeoutMs = Math.max(1, deadlineMs - performance.now());
    const argv = inImage(['bash', '-c', command]);
    const done = await sandbox.exec({ ...asAgent, ...argv, env: task.env, timeoutMs }, signal);
    requireTaskSuccess(done, `set-up command ${JSON.stringify(command.slice(0, 120))}`);
  }
  if (hiddenTests) await gatherHiddenTests(sandbox, task, { workdir, deadlineMs }, signal);
  const commit = await sandbox.exec(
    { ...asAgent, argv: ['sh', '-c', commitScript], env: gitEnv, timeoutMs: gitTimeoutMs },
    signal,
  );
  const said = commit.stdout.toString('utf8').trim();
  if (commit.exitCode === lacksPrograms) throw incomplete(said);
  requireSuccess(commit, `the base commit in ${workdir}`);
  const baseCommit = said.split('\n').at(-1) ?? '';
  if (!/^[0-9a-f]{40,64}$/.test(baseCommit)) {
    throw new TemperFailure('SetupFailed', `expected a commit id in ${workdir}, got ${JSON.stringify(baseCommit)}`);
  }
  await requireEntrypoint(sandbox, task);
  if (keep) await keepBase(sandbox, workdir, signal);
  if (keep && task.gradedIn === 'same') await keepPrograms(sandbox, { task, workdir }, signal);
  return { baseCommit };
}

/** The failure of an image that lacks programs: temper's own, or the shell of a task's scripts. */
const incomplete = (lacking: string): TemperFailure =>
  new TemperFailure(
    'UnsupportedTask',
    `expected the image of a sandbox to have bash, find and git, got one without ${lacking.split(' ').join(', ')}; install what is missing in the image`,
  );

/** Removes paths of the image, as root: files outside the workdir do not belong to the agent. */
async function removePaths(sandbox: Sandbox, paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  const argv = ['rm', '-rf', '--', ...paths] as const;
  const limits = { timeoutMs: gitTimeoutMs, maxOutputBytes: outputBytes };
  const removed = await sandbox.exec({ account: 'grader', cwd: '/', argv, env: {}, ...limits }, signal);
  requireSuccess(removed, `removing ${paths.join(' ')}`);
}

/** The copies of a workspace file on disk: itself, in the kept base, and in the workspace's repository. */
const copies = 3;
/** The share of the disk limit below which the disk is not measured. */
const negligible = 1 / 20;

/**
 * Returns the MB on a sandbox's disk before the agent starts: the task's files and their copies, which do not count
 * against the disk limit of the agent or its tests. Returns 0 if that is negligible.
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
