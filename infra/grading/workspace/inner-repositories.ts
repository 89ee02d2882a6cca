/*
 * The repositories inside a workspace, as its files show them: submodules, alive or dead, and repositories that the outer one ignores
 * or does not know.
 */

/**
 * Shell functions. `repositories` prints the directories below this one that have a `.git` of any kind, the deepest first: on each
 * line the bytes of a name, in octal, whatever they are. `name_of LINE` prints such a name and a dot, since the shell drops line
 * feeds at the end of what a command prints.
 */
export const innerRepositories = `
repositories() {
  find . -name .git -prune ! -path ./.git -exec sh -c 'for one; do printf %s "\${one%/.git}" | od -An -v -t o1 | tr -d "\\n"; echo; done' sh {} + | sort -r
}
name_of() { printf '%b.' "$(printf '\\\\0%s' $1)"; }
`;
