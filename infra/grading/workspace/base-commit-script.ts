import { gitPrelude } from '../plain-git.ts';

/**
 * \`strip\`, in the working directory: a repository that an image brings keeps its commit, that commit's history and its
 * settings. All else may hold the answer (later commits, tags, stashes, notes, reflogs, work trees, borrowed objects,
 * unfinished merges), so nothing is taken away: a new repository is made of what may stay, and takes the place of the old.
 * Repositories inside it come first, because a submodule's lies in its parent's. Repeatable at any point.
 */
export const stripHistory = `
inner() { { git ls-files -s | while IFS='	' read -r info path; do case $info in 160000*) printf '%s\\n' "$path" ;; esac; done
  git ls-files -o --exclude-standard | while IFS= read -r path; do case $path in */) printf '%s\\n' "\${path%/}" ;; esac; done; } </dev/null; }
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
  [ -e .git ] || [ -L .git ] || [ -e .git.before ] || exit 0
  export GIT_CEILING_DIRECTORIES="\${PWD%/*}/"
  [ -e .git ] || [ ! -d .git.before ] || mv .git.before .git || exit 1
  rm -rf .git.before .git.after
  git rev-parse --git-dir >/dev/null 2>&1 || { rm -rf .git; exit 0; }
  inner | while IFS= read -r path; do [ ! -e "./$path/.git" ] || ( cd "./$path" && strip ) || exit 1; done || exit 1
  old=$(git rev-parse --git-common-dir) && branch=$(git symbolic-ref -q HEAD || true) && head=$(git rev-parse -q --verify 'HEAD^{commit}' || true) || exit 1
  format=; [ \${#head} -ne 64 ] || format=--object-format=sha256
  absent=; [ -z "$(git config --get-regexp '^(remote\\..*\\.promisor|extensions\\.partialclone)$')" ] || absent=--missing=allow-any
  git init -q --bare --template= $format .git.after && settings "$old" .git.after/config && mkdir -p .git.after/info || exit 1
  for file in exclude attributes sparse-checkout; do [ ! -f "$old/info/$file" ] || cp "$old/info/$file" .git.after/info/ || exit 1; done
  [ ! -f "$old/shallow" ] || cp "$old/shallow" .git.after/ || exit 1
  [ -z "$branch" ] || git --git-dir=.git.after symbolic-ref HEAD "$branch" || exit 1
  if [ -n "$head" ]; then
    printf '%s\\n' "$head" | git pack-objects -q --revs --delta-base-offset $absent --stdout | git --git-dir=.git.after index-pack --stdin >/dev/null &&
      git --git-dir=.git.after -c core.logAllRefUpdates=false update-ref "\${branch:-HEAD}" "$head" &&
      git --git-dir=.git.after read-tree HEAD || exit 1
  fi
  mv .git .git.before && mv .git.after .git && rm -rf .git.before
)
`;

/**
 * Makes or takes over the repository in the working directory, as the agent's account, and prints its commit. The dates are
 * fixed, so that the same task has the same base commit in every sandbox.
 */
export const commitScript = `
${gitPrelude}${stripHistory}
set -e
plainly() { git -c core.excludesFile=/dev/null -c core.safecrlf=false -c core.hooksPath=/dev/null -c maintenance.auto=false -c gc.auto=0 "$@"; }
commit() { plainly -c user.name=temper -c user.email=temper@localhost -c commit.gpgsign=false commit -q --allow-empty --no-verify -m 'Start of the task'; }
strip
if [ -e .git ]; then
  plainly add -A
  if ! git rev-parse -q --verify HEAD >/dev/null || ! git diff --cached --quiet; then commit; fi
else
  git init -q --template= . && echo 'ref: refs/heads/main' >.git/HEAD
  plainly add -A
  commit
fi
git rev-parse HEAD
`;
