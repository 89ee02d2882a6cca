import { keeperDirectory } from './scripts.ts';

/*
 * The directories in which temper finds its own programs inside a sandbox: the system's, and those of the image's PATH that the
 * agent's account can't change. They are looked up once, when the sandbox starts, by its first process, and kept in a file of the
 * keeper's.
 */

/** The file with the search path of temper's own programs. */
const pathFile = `${keeperDirectory}/path`;
/** The file with the image's environment, as commands of the shell that export it. */
const environmentFile = `${keeperDirectory}/environment`;

const system = '/usr/sbin:/usr/bin:/sbin:/bin';

/** The code that exports the variables of the image, for `startVariables`. */
export const imageVariables = `. ${environmentFile}`;

/** Has a script find its programs in these directories only, or in the system's where none are kept, as in a local sandbox. */
export const useOwnPrograms = `
PATH=${system}; [ ! -r ${pathFile} ] || read -r PATH <${pathFile} || PATH=${system}
export PATH
`;

/**
 * The beginning of every script of temper's own. It may come before the first process of the sandbox has looked the directories up,
 * and then waits with a program of the image.
 */
export const findOwnPrograms = `
temper_n=0
until [ -r ${pathFile} ] || [ $temper_n -ge 500 ]; do temper_n=$((temper_n+1)); PATH=${system}:$PATH sleep 0.02; done
${useOwnPrograms}`;

/** The programs that temper's own scripts start. */
const programs =
  'sh bash awk basename cat chmod chown cp cut date dd dirname du env find git grep head id kill ln ls mkdir mkfifo mktemp mv od patch readlink rm rmdir sed sleep sort stat tail tar tee test timeout touch tr true wc xargs';

/**
 * Looks the directories up and keeps them, and the image's environment, before any agent starts. `agent` is the agent's uid, empty
 * where it is root and may replace every program, and `places` are the directories that it gets. A directory is left out if its
 * name is unusual, if another account than root may write it or a directory above it, or if that holds for a program of temper's in
 * it, behind all links. The path has no links: each directory is named by where it really is.
 */
export const keepOwnPrograms = `
umask 022
for place in $places; do places="$places $(CDPATH= cd -P "$place" 2>/dev/null && pwd -P)"; done
export -p >${environmentFile}
temper_image=$PATH
PATH=${system}:$PATH

# Adds the path $1 and all directories above it to what is looked at.
chain() {
  p=$1
  while :; do
    case " $looked " in *" \${p:-/} "*) return ;; esac
    looked="$looked \${p:-/}"
    [ -n "$p" ] || return
    p=\${p%/*}
  done
}
# Whether the agent can change nothing in the directory $1 that temper's own programs depend on.
own() {
  looked=; chain "$1"
  for name in ${programs}; do
    f=$1/$name
    [ -e "$f" ] || continue
    [ ! -L "$f" ] || f=$(readlink -f "$f") || return
    case $f in *[!A-Za-z0-9_./+@,=~%-]*) return 1 ;; esac
    chain "$f"
  done
  for place in $places; do case " $looked " in *" $place "*) return 1 ;; esac; done
  ls -ldn $looked | {
    seen=
    while read -r mode links uid rest; do
      case $mode in ????????w*) exit 1 ;; esac
      [ "$uid" != "$agent" ] || exit 1
      seen=1
    done
    [ -n "$seen" ]
  }
}
found=${system}
set -f; IFS=:
for d in $temper_image /usr/local/sbin /usr/local/bin; do
  IFS=' '
  case $d in /*) ;; *) continue ;; esac
  d=$(CDPATH= cd -P "$d" 2>/dev/null && pwd -P) || continue
  case $d in *[!A-Za-z0-9_./+@,=~%-]*) continue ;; esac
  case :$found: in *:"$d":*) continue ;; esac
  [ -z "$agent" ] || own "$d" || continue
  found=$found:$d
done
set +f; unset IFS
PATH=$found
echo "$PATH" >${pathFile}.new && mv ${pathFile}.new ${pathFile}
`;
