/** Size of the tail that is kept beyond the cap of the head. */
const tailBytes = 2 ** 20;

/**
 * A shell function for both kinds of sandbox. `keep FILE` reads all of its input, so that the writer never blocks, and keeps its
 * head, up to `$blocks` of 512 bytes, and once the writer has ended its tail. It appends, so that a second writer overwrites
 * nothing. FILE.rest exists meanwhile.
 */
export const keepLog = `
keep() {
  ( ulimit -f "$blocks"; exec cat >>"$1" ) && return
  : >"$1.rest"
  tail -c ${tailBytes} >"$1.rest" || cat >/dev/null
  [ ! -s "$1.rest" ] || { printf '\\n… output left out …\\n'; cat "$1.rest"; } >>"$1"
  rm -f "$1.rest"
}
`;
