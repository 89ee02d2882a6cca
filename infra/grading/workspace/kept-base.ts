import type { Sandbox } from '../../sandbox/sandbox.ts';
import { gitPrelude, plainRepository } from '../plain-git.ts';
import { requireSuccess } from './require-success.ts';

/** The repository that keeps the files of the base commit out of the agent's reach. */
export const keptBase = '/root/base.git';
/** The file in it that names the tree which diffs are taken against. */
export const keptTree = `${keptBase}/base-tree`;
/** The directory with the base commit's ignore files, each at its own path; absent if there are none. */
export const keptRules = '/root/base.rules';

const timeoutMs = 120_000;
const outputBytes = 64 * 1024;

/**
 * Copies every file that the workspace's repository tracks, also those of repositories inside it, with the bytes that lie in
 * the workspace rather than those that the repository would store. $1 is the workspace.
 */
const keepScript = `
${gitPrelude}${plainRepository}
set -e
[ ! -e ${keptBase} ] || rm -rf ${keptBase} ${keptRules}
plain ${keptBase}

# Adds the files named on stdin to the kept index.
put() { GIT_DIR=${keptBase} GIT_WORK_TREE="$top" git update-index -z --add --remove --replace --stdin; }
# Lists the repositories that the one in this directory tracks as submodules.
nested() { git ls-files -s | while IFS='	' read -r info path; do case $info in 160000*) printf '%s\\n' "$path" ;; esac; done; }
# Keeps the files of the repository in this directory, then those of its submodules.
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

# The tree that diffs are taken against.
export GIT_DIR=${keptBase} GIT_WORK_TREE="$top"
git write-tree >${keptTree}

# The rules of the base commit: the .gitignore files and info/exclude.
[ ! -s .git/info/exclude ] || cp .git/info/exclude ${keptBase}/info/exclude
git ls-files -z -- ':(glob)**/.gitignore' >${keptBase}/ignoring
[ ! -s ${keptBase}/ignoring ] || git checkout-index -z --stdin --prefix=${keptRules}/ <${keptBase}/ignoring
[ ! -s ${keptBase}/info/exclude ] || mkdir -p ${keptRules}
`;

/** Keeps the base commit for the capture of a diff. Call it before the agent starts. Throws SetupFailed or SandboxUnavailable. */
export async function keepBase(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const kept = await sandbox.exec(
    {
      account: 'grader',
      cwd: '/',
      argv: ['sh', '-c', keepScript, 'sh', workdir],
      env: {},
      timeoutMs,
      maxOutputBytes: outputBytes,
    },
    signal,
  );
  requireSuccess(kept, 'keeping a copy of the base commit');
}
