import { gitPrelude } from '../plain-git.ts';
import { makeRoom, waitingRoom } from '../protection/make-room.ts';

/*
 * Scripts that read and restore what the tests find by their PATH in directories that the agent can write. They run as the agent.
 * Their output is a list of words that each end with a null byte, an empty word, and a tar of the files that are listed.
 */

/** The word before a directory of the PATH: its path, the path without links or `-`, `own` or `other`, `package` or `plain`. */
export const directoryMark = 'dir';
/** The word before the path of a file elsewhere that a program of such a directory needs. */
export const beyondMark = 'beyond';
/** The word before the origin of the workspace's commit, the workdir without links, and the names of the files in that commit. */
export const trackedMark = 'tracked';

/** Exit code for a directory that the agent's account can't list. */
const closed = 77;

const listing = `
export LC_ALL=C
lf='
'
# Opens a directory and those above it as their owner, who may have closed them: others may still find programs there, or the
# tests open it again. Ends the script if the directory cannot be listed all the same.
open_up() {
  [ -z "\${1%/*}" ] || open_up "\${1%/*}"
  { [ -r "$1" ] && [ -x "$1" ]; } || [ ! -d "$1" ] || chmod u+rx "$1" 2>/dev/null
}
require_open() {
  open_up "$1"
  case $(ls -d "$1/." 2>&1 >/dev/null) in
    *'Permission denied'*) ;;
    *) { [ -d "$1" ] && [ ! -r "$1" ]; } || return 0 ;;
  esac
  echo "directory $1 of the PATH cannot be read" >&2
  exit ${closed}
}
# Prints the programs of a directory, or all files of a directory of packages. Names that no PATH could lead to are left out.
programs() {
  if [ "$2" = package ]; then set -- "$1" -type f -o -type l
  else set -- "$1" -type l -o -type f '(' -perm -100 -o -perm -010 -o -perm -001 ')'; fi
  top=$1; shift
  find "$top/" -maxdepth 1 ! -name "*$lf*" ! -name '*\\\\*' '(' "$@" ')' -print
}
words() { [ -z "$1" ] || printf '%s\\n' "$1" | tr '\\n' '\\0'; }
without_links() { ( cd -P "$1/" 2>/dev/null && pwd -P ) || echo -; }
# Packs the files whose absolute paths are on stdin. Those that cannot be read are left out.
packed() { sed 's|^/*||' | tar -c -f - -C / -T - 2>/dev/null || true; }
`;

/**
 * The function `linked_files`: prints the files that the agent could change and that links in the directories $others lead to, at
 * each step. Of the workdir only files of packages count, and those named like a program of the system; others are the task's own
 * code.
 */
const linkedFiles = `
counts() {
  case $1 in "$workdir"/*) ;; *) return 0 ;; esac
  case $1 in */node_modules/*) return 0 ;; esac
  [ -f "\${1%/*/*}/pyvenv.cfg" ] || [ -x "/usr/bin/\${1##*/}" ] || [ -x "/bin/\${1##*/}" ]
}
# Prints where the links on stdin lead to in one step, by absolute paths.
targets() {
  tr '\\n' '\\0' | xargs -0 ls -ld 2>/dev/null |
    sed -n -e 's|^l.* /.*/[^/]* -> \\(/.*\\)$|\\1|p' -e 's|^l.* \\(/.*\\)/[^/]* -> \\([^/].*\\)$|\\1/\\2|p' | sort -u |
    while IFS= read -r file; do
      case $file in */../*) above=$(without_links "\${file%/*}"); file=\${above%/}/\${file##*/} ;; esac
      printf '%s\\n' "$file"
    done
}
linked_files() {
  links=$(printf '%s' "$others" | sort -u | while IFS= read -r one; do
    [ "$one" = - ] || find "$one/" -maxdepth 1 -type l ! -name "*$lf*" -print 2>/dev/null
  done)
  [ -n "$links" ] || return 0
  {
    printf '%s\\n' "$links" | tr '\\n' '\\0' | xargs -0 realpath 2>/dev/null
    for step in 1 2 3 4 5 6 7 8; do
      links=$(printf '%s\\n' "$links" | targets)
      [ -n "$links" ] || break
      printf '%s\\n' "$links"
      links=$(printf '%s\\n' "$links" | while IFS= read -r file; do [ ! -L "$file" ] || printf '%s\\n' "$file"; done)
      [ -n "$links" ] || break
    done
  } | sort -u | while IFS= read -r file; do
    if [ -f "$file" ] && can_change "$file" && counts "$file"; then printf '%s\\n' "$file"; fi
  done
}
`;

/**
 * Lists the directories of the PATH in a sandbox that no agent has worked in, and packs the programs of those that the agent can
 * write. The virtual environments of the workdir count as if they had been entered. Prints nothing if there are none. $1 the
 * workdir, $2 the PATH; if it is empty, the image's.
 */
export const baseScript = `
path=\${2:-$PATH} PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
${listing}
cd "$1" || exit
workdir=$(pwd -P)
# Whether the agent could change what is at a path, or make it. One that is root counts as the account that it has elsewhere.
if [ "$(id -u)" = 0 ]; then
  can_change() { case $1/ in "$workdir"/* | "\${HOME:-/root}"/* | /home/agent/* | /tmp/*) ;; *) return 1 ;; esac; }
else
  can_change() {
    at=$1
    until [ -w "$at" ]; do
      [ "$at" != / ] || return 1
      at=\${at%/*} at=\${at:-/}
    done
  }
fi

# Split the PATH. A colon at its end names the workdir, too.
path=$path:
set -f; IFS=:; set -- $path; unset IFS; set +f
# Tests may enter the virtual environments of the workdir, or name programs in them.
for venv in "$workdir"/pyvenv.cfg "$workdir"/*/pyvenv.cfg "$workdir"/.[!.]*/pyvenv.cfg \\
  "$workdir"/*/*/pyvenv.cfg "$workdir"/*/.[!.]*/pyvenv.cfg \\
  "$workdir"/.[!.]*/*/pyvenv.cfg "$workdir"/.[!.]*/.[!.]*/pyvenv.cfg; do
  bin=\${venv%/*}/bin
  [ -f "$venv" ] && [ -d "$bin" ] || continue
  case :$path in *:"$bin":*) ;; *) set -- "$bin" "$@" ;; esac
done
owns= others=
for one; do
  case $one in /*) ;; *) one=$workdir/$one ;; esac
  real=$(without_links "$one")
  if can_change "\${one%/}" || can_change "$real"; then owns=1; else others=$others$real$lf; fi
done
${linkedFiles}
linked=$(linked_files)
[ -n "$owns$linked" ] || exit 0

all=
words_beyond() { [ -z "$1" ] || printf '%s\\n' "$1" | while IFS= read -r file; do printf '%s\\0' ${beyondMark} "$file"; done; }
for one; do
  case $one in /*) ;; *) one=$workdir/$one ;; esac
  one=\${one%/} real=$(without_links "$one") whose=other what=plain found=
  # Files elsewhere that a link leads to: an interpreter, or a file of a package. Others in the workdir are the task's own code.
  leads_to() { case $1 in "$workdir"/*) return 1 ;; esac; }
  if can_change "$one" || { [ "$real" != - ] && can_change "$real"; }; then
    whose=own
    require_open "$one"; real=$(without_links "$one")
  fi
  case $real in */node_modules/.bin) what=package; leads_to() { case $1 in */node_modules/*) ;; *) return 1 ;; esac; } ;; esac
  if [ -f "\${real%/*}/pyvenv.cfg" ]; then what=package; leads_to() { true; }; fi
  [ "$real" = - ] || found=$(programs "$real" $what) || [ $whose = other ] || exit
  printf '%s\\0' ${directoryMark} "$one" "$real" $whose $what
  words "$found"
  [ $whose = own ] && [ "$real" != - ] || continue
  all=$all$found$lf
  beyond=$(find "$real/" -maxdepth 1 -type l -exec realpath {} + 2>/dev/null | sort -u | while IFS= read -r file; do
    case $file in "$real"/*) continue ;; esac
    if [ -f "$file" ] && leads_to "$file" && can_change "$file"; then printf '%s\\n' "$file"; fi
  done)
  if [ $what = package ] && [ -f "\${real%/*}/pyvenv.cfg" ]; then beyond=\${real%/*}/pyvenv.cfg\${beyond:+$lf$beyond}; fi
  words_beyond "$beyond"
  all=$all$beyond$lf
done

words_beyond "$linked"
all=$all$linked$lf

# The files that the task's own repository tracks, or, if it has none, those that are in the base commit.
${gitPrelude}
export GIT_CEILING_DIRECTORIES="\${workdir%/*}"
cd "$workdir"
origin=none commit=
if commit=$(git rev-parse -q --verify HEAD 2>/dev/null); then
  origin=task
  if [ "$(git log -1 --format=%ae%s)" = 'temper@localhostStart of the task' ]; then
    commit=$(git rev-parse -q --verify HEAD^) || { origin=temper commit=HEAD; }
  fi
fi
printf '%s\\0' ${trackedMark} $origin "$workdir"
[ -z "$commit" ] || git ls-tree -r -z --name-only --full-tree "$commit"
printf '\\0'
printf '%s\\n' "$all" | sed '/^$/d' | packed
`;

/**
 * Lists such directories after the agent's work has come into the sandbox, and packs those files that the sandbox had before.
 * $1 the PATH for this script, the rest: pairs of a directory and `package` or `plain`. Stdin has the paths of the files.
 */
export const nowScript = `
PATH=$1; shift
${listing}
while [ $# -gt 0 ]; do
  require_open "$1"
  real=$(without_links "$1") found=
  printf '%s\\0' ${directoryMark} "$1" "$real" own "$2"
  [ "$real" = - ] || found=$(programs "$real" "$2") || exit
  words "$found"
  shift 2
done
printf '\\0'
packed
`;

/**
 * Removes the files whose paths \`names\` has, and puts those of a tar in their place. Stdin is a tar of both. $1 the PATH for this
 * script.
 */
export const putScript = `
PATH=$1
${makeRoom}
rm -rf ${waitingRoom} && mkdir -p ${waitingRoom} && tar -x -o -f - -C ${waitingRoom} || exit
cd / && make_room ${waitingRoom}/names || exit
[ ! -s ${waitingRoom}/tar ] || tar -x -p -o -f ${waitingRoom}/tar || exit
exec rm -rf ${waitingRoom}
`;
