import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../sandbox/sandbox.ts';
import type { HarborTask } from '../tasks/harbor.ts';

const setupTimeoutMs = 300_000;
const gitTimeoutMs = 120_000;
const outputBytes = 64 * 1024;

/**
 * Makes or takes over the repository in the workdir, as the agent's account. The dates are fixed, so that the same task
 * has the same base commit in every sandbox. An image that brings a repository loses all but the commit at HEAD's history:
 * what comes after it may hold the answer.
 */
const commitScript = `
set -e
commit() { git -c user.name=temper -c user.email=temper@localhost -c commit.gpgsign=false -c maintenance.auto=false commit -q --allow-empty --no-verify -m 'Start of the task'; }
if [ ! -d .git ]; then
  git init -q -b main --template=
  git add -A
  commit
  exec cat .git/refs/heads/main
fi
git for-each-ref --format='%(refname)' | while read -r ref; do
  [ "$ref" = "$(git symbolic-ref -q HEAD || true)" ] || git update-ref -d "$ref"
done
git remote | while read -r remote; do git remote remove "$remote"; done
rm -rf .git/logs .git/FETCH_HEAD .git/ORIG_HEAD
git -c gc.reflogExpire=now -c gc.pruneExpire=now gc -q --prune=now
git add -A
if ! git rev-parse -q --verify HEAD >/dev/null || ! git diff --cached --quiet; then commit; fi
git rev-parse HEAD
`;

/** A copy of the repository where the agent can't reach it: the diff is taken against this one, whatever became of the other. */
const keepScript = 'rm -rf /root/base.git && cp -R "$1/.git" /root/base.git && rm -rf /root/base.git/hooks';

const gitEnv = {
  GIT_AUTHOR_DATE: '2000-01-01T00:00:00Z',
  GIT_COMMITTER_DATE: '2000-01-01T00:00:00Z',
  GIT_CONFIG_NOSYSTEM: '1',
} as const;

/**
 * The workspace of a task at its base commit. Repeatable until the agent has started. `keepBase` where a diff will be
 * taken. Throws SetupFailed.
 */
export async function prepareWorkspace(
  sandbox: Sandbox,
  task: HarborTask,
  { workdir, keepBase }: { readonly workdir: string; readonly keepBase: boolean },
  signal: AbortSignal,
): Promise<{ readonly baseCommit: string }> {
  if (task.workspace.size > 0) await sandbox.putFiles({ tree: task.workspace, at: workdir, owner: 'agent' }, signal);
  const asAgent = { account: 'agent', cwd: workdir, maxOutputBytes: outputBytes } as const;
  for (const command of task.setup) {
    const argv = ['bash', '-c', command] as const;
    const done = await sandbox.exec({ ...asAgent, argv: [...argv], env: task.env, timeoutMs: setupTimeoutMs }, signal);
    requireSuccess(done, `set-up command ${JSON.stringify(command.slice(0, 120))}`);
  }
  const commit = await sandbox.exec(
    { ...asAgent, argv: ['sh', '-c', commitScript], env: gitEnv, timeoutMs: gitTimeoutMs },
    signal,
  );
  requireSuccess(commit, `the base commit in ${workdir}`);
  const baseCommit = commit.stdout.toString('utf8').trim().split('\n').at(-1) ?? '';
  if (!/^[0-9a-f]{40,64}$/.test(baseCommit)) {
    throw new TemperFailure('SetupFailed', `expected a commit id in ${workdir}, got ${JSON.stringify(baseCommit)}`);
  }
  if (keepBase) await keep(sandbox, workdir, signal);
  return { baseCommit };
}

async function keep(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const kept = await sandbox.exec(
    {
      account: 'grader',
      cwd: '/',
      argv: ['sh', '-c', keepScript, 'sh', workdir],
      env: {},
      timeoutMs: gitTimeoutMs,
      maxOutputBytes: outputBytes,
    },
    signal,
  );
  requireSuccess(kept, 'keeping a copy of the base commit');
}

function requireSuccess(result: ExecResult, what: string): void {
  if (result.exitCode === 0 && !result.timedOut) return;
  const how = result.timedOut ? 'ran out of time' : `ended with exit code ${result.exitCode}`;
  const said = result.stderr.toString('utf8').trim().slice(-300);
  throw new TemperFailure(
    'SetupFailed',
    `${what} ${how}: ${said || 'it said nothing'}; does the image hold git and a shell?`,
  );
}
