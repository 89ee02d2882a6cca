import type { Sandbox } from '../sandbox/sandbox.ts';
import { gitPrelude, plainRepository } from './plain-git.ts';
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
rm -rf ${keptBase} ${keptRules}
plain ${keptBase}
put() { GIT_DIR=${keptBase} GIT_WORK_TREE="$top" git update-index -z --add --remove --replace --stdin; }
nested() { git ls-files -s | while IFS='	' read -r info path; do case $info in 160000*) printf '%s\\n' "$path" ;; esac; done; }
keep() (
  export GIT_DIR=.git GIT_WORK_TREE=. GIT_INDEX_FILE=${keptBase}/tracked
  cp .git/index "$GIT_INDEX_FILE"
  nested >${keptBase}/nested
  git update-index --force-remove --stdin <${keptBase}/nested
  git ls-files -z | ( unset GIT_INDEX_FILE; put )
  GIT_INDEX_FILE=.git/index nested | while IFS= read -r path; do
    [ ! -d "./$path/.git" ] || ( cd "./$path" && keep ) || exit 1
  done
)
cd "$1"; top=$PWD
keep
export GIT_DIR=${keptBase} GIT_WORK_TREE="$top"
git write-tree >${keptTree}
rm -f ${keptBase}/tracked ${keptBase}/nested
[ ! -s .git/info/exclude ] || cp .git/info/exclude ${keptBase}/info/exclude
git ls-files -z -- ':(glob)**/.gitignore' | git checkout-index -z --stdin --prefix=${keptRules}/
[ ! -s ${keptBase}/info/exclude ] || mkdir -p ${keptRules}
`;

/** Call before the agent starts, when the workspace is at its base commit. Throws SetupFailed. */
export async function keepBase(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const argv = ['sh', '-c', keepScript, 'sh', workdir] as const;
  const limits = { timeoutMs, maxOutputBytes: outputBytes };
  const kept = await sandbox.exec({ account: 'grader', cwd: '/', argv: [...argv], env: {}, ...limits }, signal);
  requireSuccess(kept, 'keeping a copy of the base commit');
}
