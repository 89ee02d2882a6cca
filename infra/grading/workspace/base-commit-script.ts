import { gitPrelude } from '../plain-git.ts';
import { innerRepositories } from './inner-repositories.ts';

/**
 * The shell function `strip`: reduces the repository in the working directory, which an image brought, to its commit, that
 * commit's history and its settings. Everything else may hold the answer: later commits, tags, stashes, notes, reflogs,
 * worktrees, borrowed objects, unfinished merges. So nothing is deleted from the old repository; a new one is made of what
 * may stay, and replaces it. The function can be repeated after an interruption at any point.
 *
 * `strip_inner` does the same with the repositories inside, and comes first, because a submodule's lies in its parent's. One that
 * git cannot read loses its `.git`, and its files are kept.
 */
const stripHistory = `
# Copies the settings of the repository $1 to the file $2, without those that name other places, programs or extensions.
settings() {
  cp "$1/config" "$2" || return
  git config -f "$2" --name-only --list | while IFS= read -r name; do
    case $name in
      remote.*|branch.*|submodule.*|url.*|credential.*|http.*|filter.*|include.*|includeif.*|maintenance.*|gc.*) git config -f "$2" --remove-section "\${name%.*}" 2>/dev/null ;;
      extensions.objectformat) ;;
      extensions.*|core.worktree|core.hookspath|core.fsmonitor|core.alternaterefs*) git config -f "$2" --unset-all "$name" 2>/dev/null ;;
    esac
  done
  git config -f "$2" core.bare false
}

strip() (
  # Finish or discard an interrupted replacement; remove a .git that is not a repository.
  [ -e .git ] || [ -L .git ] || [ -e .git.before ] || exit 0
  # This repository alone, and not one above it.
  export GIT_DIR=.git
  [ -e .git ] || [ ! -d .git.before ] || mv .git.before .git || exit 1
  rm -rf .git.before .git.after
  git rev-parse --git-dir >/dev/null 2>&1 || { rm -rf .git; exit 0; }

  # Make the new repository, with the old one's object format, settings, patterns and shallow boundary. A partial clone may
  # lack objects.
  old=$(git rev-parse --git-common-dir) && branch=$(git symbolic-ref -q HEAD || true) && head=$(git rev-parse -q --verify 'HEAD^{commit}' || true) || exit 1
  format=; [ \${#head} -ne 64 ] || format=--object-format=sha256
  absent=; [ -z "$(git config --get-regexp '^(remote\\..*\\.promisor|extensions\\.partialclone)$')" ] || absent=--missing=allow-any
  ( unset GIT_DIR; git init -q --bare --template= $format .git.after ) && settings "$old" .git.after/config && mkdir -p .git.after/info || exit 1
  for file in exclude attributes sparse-checkout; do [ ! -f "$old/info/$file" ] || cp "$old/info/$file" .git.after/info/ || exit 1; done
  [ ! -f "$old/shallow" ] || cp "$old/shallow" .git.after/ || exit 1
  [ -z "$branch" ] || git --git-dir=.git.after symbolic-ref HEAD "$branch" || exit 1

  # Copy the objects that the commit reaches, and check its tree into the index.
  if [ -n "$head" ]; then
    printf '%s\\n' "$head" | git pack-objects -q --revs --delta-base-offset $absent --stdout | git --git-dir=.git.after index-pack --stdin >/dev/null &&
      git --git-dir=.git.after -c core.logAllRefUpdates=false update-ref "\${branch:-HEAD}" "$head" &&
      git --git-dir=.git.after read-tree HEAD || exit 1
  fi
  mv .git .git.before && mv .git.after .git && rm -rf .git.before
)

strip_inner() {
  repositories | while read -r line; do
    path=$(name_of "$line"); path=\${path%.}
    ( cd "$path" && strip ) </dev/null || rm -rf "$path/.git" "$path/.git.before" "$path/.git.after" || exit
  done
}
`;

/** The exit code of an image that lacks programs, whose names are the output. */
export const lacksPrograms = 91;

/**
 * Makes the repository in the working directory, or takes over the image's, and prints its commit. Runs as the agent. The
 * dates are fixed, so that a task has the same base commit in every sandbox. First it looks for the programs that temper and the
 * scripts of tasks need.
 */
export const commitScript = `
lacking=; for program in bash find git; do command -v $program >/dev/null || lacking="$lacking $program"; done
[ -z "$lacking" ] || { echo $lacking; exit ${lacksPrograms}; }
${gitPrelude}${innerRepositories}${stripHistory}
set -e
# Git without the repository's hooks, ignored files of the account, and maintenance in the background.
plainly() { git -c core.excludesFile=/dev/null -c core.safecrlf=false -c core.hooksPath=/dev/null -c maintenance.auto=false -c gc.auto=0 "$@"; }
commit() { plainly -c user.name=temper -c user.email=temper@localhost -c commit.gpgsign=false commit -q --allow-empty --no-verify -m 'Start of the task'; }
# Adds all files that git accepts. One that it refuses is untracked, such as a repository without a commit: the kept base has it. Where
# a file does not have the encoding that its attributes say, all are stored as they are.
add() {
  plainly add -A 2>/dev/null && return
  plainly add -A --ignore-errors 2>/dev/null || [ $? -eq 1 ] && return
  mkdir -p .git/info && [ ! -e .git/info/attributes ] || cp .git/info/attributes .git/attributes.before
  printf '\\n%s\\n' '* !working-tree-encoding' >>.git/info/attributes
  plainly add -A --ignore-errors || [ $? -eq 1 ]
  if [ -e .git/attributes.before ]; then mv .git/attributes.before .git/info/attributes; else rm .git/info/attributes; fi
}
strip_inner
strip
# From here on the repository is named: git does not ask then whose it is, which its older versions let no variable answer.
if [ -e .git ]; then
  export GIT_DIR=.git
  # Commit what the set-up changed.
  add
  if ! git rev-parse -q --verify HEAD >/dev/null || ! git diff --cached --quiet; then commit; fi
else
  git init -q --template= . && echo 'ref: refs/heads/main' >.git/HEAD
  export GIT_DIR=.git
  add
  commit
fi
git rev-parse HEAD
`;
