import type { Sandbox } from '../../sandbox/sandbox.ts';
import { gitPrelude, plainRepository } from '../plain-git.ts';
import { requireSuccess } from './require-success.ts';

/** The files at the base commit, in a repository where the agent can't reach them, whatever becomes of its own. */
export const keptBase = '/root/base.git';
/** The tree in it that diffs are taken against. */
export const keptTree = `${keptBase}/base-tree`;
/** The ignore rules at the base commit, each file in its place; absent when there are none. */
export const keptRules = '/root/base.rules';

const timeoutMs = 120_000;
const outputBytes = 64 * 1024;

/**
 * Keeps every file that the workspace's repository tracks, as it lies there and not as that repository would store it,
 * those of repositories inside it too. $1 the workspace.
 */
const keepScript = `
${gitPrelude}${plainRepository}
set -e
[ ! -e ${keptBase} ] || rm -rf ${keptBase} ${keptRules}
plain ${keptBase}
put() { GIT_DIR=${keptBase} GIT_WORK_TREE="$top" git update-index -z --add --remove --replace --stdin; }
nested() { git ls-files -s | while IFS='	' read -r info path; do case $info in 160000*) printf '%s\\n' "$path" ;; esac; done; }
keep() (
  export GIT_DIR=.git GIT_WORK_TREE=.
  inner=$(nested)
  [ -n "$inner" ] || { git ls-files -z | put; exit; }
  cp .git/index ${keptBase}/tracked
  printf '%s\\n' "$inner" | GIT_INDEX_FILE=${keptBase}/tracked git update-index --force-remove --stdin
  GIT_INDEX_FILE=${keptBase}/tracked git ls-files -z | put
  rm ${keptBase}/tracked
  printf '%s\\n' "$inner" | while IFS= read -r path; do
    [ ! -d "./$path/.git" ] || ( cd "./$path" && keep ) || exit 1
  done
)
cd "$1"; top=$PWD
keep
export GIT_DIR=${keptBase} GIT_WORK_TREE="$top"
git write-tree >${keptTree}
[ ! -s .git/info/exclude ] || cp .git/info/exclude ${keptBase}/info/exclude
git ls-files -z -- ':(glob)**/.gitignore' >${keptBase}/ignoring
[ ! -s ${keptBase}/ignoring ] || git checkout-index -z --stdin --prefix=${keptRules}/ <${keptBase}/ignoring
[ ! -s ${keptBase}/info/exclude ] || mkdir -p ${keptRules}
`;

/** Call before the agent starts, when the workspace is at its base commit. Throws SetupFailed. */
export async function keepBase(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const argv = ['sh', '-c', keepScript, 'sh', workdir] as const;
  const limits = { timeoutMs, maxOutputBytes: outputBytes };
  const kept = await sandbox.exec({ account: 'grader', cwd: '/', argv: [...argv], env: {}, ...limits }, signal);
  requireSuccess(kept, 'keeping a copy of the base commit');
}
