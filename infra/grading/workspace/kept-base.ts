import type { Sandbox } from '../../sandbox/sandbox.ts';
import { gitPrelude, plainRepository } from '../plain-git.ts';
import { innerRepositories } from './inner-repositories.ts';
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
 * Copies every file of the workspace that a capture would look at, with the bytes that lie there rather than those that a repository
 * would store: what its repository and those inside it track, and what no rule ignores. $1 is the workspace.
 *
 * Names that are filtered on their way from one git command to another are lines, in which git quotes what is unusual and reads it
 * back.
 */
const keepScript = `
${gitPrelude}${plainRepository}${innerRepositories}
set -e
[ ! -e ${keptBase} ] || rm -rf ${keptBase} ${keptRules}
plain ${keptBase}

# Adds the files named on stdin to the kept index.
put() { GIT_DIR=${keptBase} GIT_WORK_TREE="$top" git update-index --add --remove --replace "$@" --stdin; }
# Keeps what the repository in this directory tracks, apart from the repositories in it.
keep() (
  [ -f .git/index ] || exit 0
  export GIT_DIR=.git GIT_WORK_TREE=.
  cp .git/index ${keptBase}/tracked
  export GIT_INDEX_FILE=${keptBase}/tracked
  git ls-files -s | sed -n 's/^160000 \\([0-9a-f]*\\) [0-3]\t/0 \\1\t/p' | git update-index --index-info
  # A file may have gone, or be a directory now.
  git diff-files -z --name-only --diff-filter=D | git update-index -z --force-remove --stdin
  git ls-files -z | ( unset GIT_INDEX_FILE; put -z )
  rm ${keptBase}/tracked
)
# Keeps the files below this directory that the index $1 lacks and no rule ignores, and the rules even if they ignore themselves. Git
# names a repository with a slash at its end.
keep_others() (
  export GIT_DIR=${keptBase} GIT_WORK_TREE="$PWD" GIT_INDEX_FILE=$1
  shift
  git ls-files -o --exclude='!.gitignore' --exclude-per-directory=.gitignore "$@" | { grep -v '/"\\{0,1\\}$' || true; } | ( unset GIT_INDEX_FILE; put )
)
# Whether the repository at the path $1 is ignored, and no submodule either.
is_ignored() {
  case $(GIT_LITERAL_PATHSPECS=1 GIT_DIR=.git git ls-files -s -- "$1" 2>/dev/null) in 160000*) return 1 ;; esac
  GIT_DIR=.git GIT_WORK_TREE=. git -c core.excludesFile=/dev/null check-ignore -q --no-index -- "$1" 2>/dev/null
}
cd "$1"; top=$PWD
keep
exclude=; [ ! -s .git/info/exclude ] || exclude=--exclude-from=.git/info/exclude
keep_others ${keptBase}/index $exclude
repositories | while read -r line; do
  path=$(name_of "$line"); path=\${path%.}
  ! is_ignored "$path" || continue
  (
    cd "$path"
    [ ! -d .git ] || keep
    keep_others ${keptBase}/none
  ) </dev/null
done

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
