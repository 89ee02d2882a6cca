import { octalName } from '../plain-git.ts';

/**
 * The shell function `make_room FILE`, for the working directory and its owner. It removes what has one of the paths in the file,
 * and every link or file in the place of a directory above it. Directories above that their owner has closed are opened.
 */
export const makeRoom = `
remove() {
  rm -rf -- "$@" 2>/dev/null && return
  # A directory in the place of a file may hold closed ones.
  find "$@" -type d ! -perm -700 -exec chmod u+rwx {} \\; 2>/dev/null
  rm -rf -- "$@"
}
# A directory of another account stays closed; if it has to be changed, the removal fails.
open_directory() { { [ -r "$1" ] && [ -w "$1" ] && [ -x "$1" ]; } || chmod u+rwx "$1" 2>/dev/null || true; }
make_room() {
  list=$1
  open_directory .
  set --
  while IFS= read -r line; do
    # The dot keeps line feeds at the end of the path.
    path=$(printf '%b.' "$line") path=\${path%.}
    rest=$path above=.
    while [ "$rest" != "\${rest#*/}" ]; do
      above=$above/\${rest%%/*} rest=\${rest#*/}
      if [ -L "$above" ] || { [ -e "$above" ] && [ ! -d "$above" ]; }; then rm -f -- "$above" || return; fi
      [ ! -d "$above" ] || open_directory "$above"
    done
    set -- "$@" "./$path"
    if [ $# -ge 100 ]; then remove "$@" || return; set --; fi
  done <"$list"
  [ $# -eq 0 ] || remove "$@"
}
`;

/** Returns the content of a file for `make_room` with these paths, which are in latin-1. */
export const pathsForRoom = (paths: readonly string[]): Buffer =>
  Buffer.from(paths.map((path) => `${octalName(path)}\n`).join(''));

/** The directory in which files for the workspace wait until there is room. No snapshot carries it. */
export const waitingRoom = '/tmp/temper-restore';
