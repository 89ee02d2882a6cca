/**
 * Git for whole files, byte for byte: what is captured and applied must not depend on what a repository, an account or an
 * attribute says about line ends, filters, encodings or names. POSIX sh, and git from 2.25 on.
 */

/** To stand before every script that calls git: no configuration but the repository's own, and messages that can be read. */
export const gitPrelude = `
export LC_ALL=C HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_NO_LAZY_FETCH=1
`;

/**
 * \`plain DIRECTORY\` makes a repository of its own, for files of any work tree. Its attributes go before those of any file
 * in the tree; names that other systems could not hold are names here. Written out, because \`git init\` costs as much as the
 * diff of a small task.
 */
export const plainRepository = `
plain() {
  mkdir -p "$1/objects" "$1/refs" "$1/info" && echo 'ref: refs/heads/main' >"$1/HEAD" || return
  printf '%s\\n' '* -text !filter -ident !working-tree-encoding !diff' >"$1/info/attributes"
  printf '%s\\n' '[core]' 'repositoryFormatVersion = 0' 'bare = true' 'autocrlf = false' 'fileMode = true' \\
    'symlinks = true' 'ignoreCase = false' 'protectHFS = false' 'protectNTFS = false' 'excludesFile = /dev/null' \\
    'attributesFile = /dev/null' 'looseCompression = 0' 'bigFileThreshold = 16m' '[gc]' 'auto = 0' >"$1/config"
}
`;

/** A name as \`printf %b\` reads it: any bytes, in one line. */
export const octal = (name: string): string =>
  [...Buffer.from(name, 'latin1')].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('');
