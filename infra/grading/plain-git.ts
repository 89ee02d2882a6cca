/*
 * Git for whole files, byte for byte: captures and patches must not depend on what a repository, an account or an attribute
 * says about line ends, filters, encodings or names. The scripts need POSIX sh and git 2.25 or newer.
 */

/**
 * Comes first in every script that calls git: only the repository's own configuration counts, any account may own it, and messages
 * are in English.
 */
export const gitPrelude = `
export LC_ALL=C HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_NO_LAZY_FETCH=1
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
`;

/**
 * The shell function `plain DIRECTORY`: makes a repository for the files of any work tree. Its attributes override those of
 * any file in the tree, and it accepts names that other systems could not store. The files are written one by one, because
 * `git init` costs as much as the diff of a small task.
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

/** Writes a latin-1 name on one line, whatever bytes it has, for `printf %b` to read. */
export const octalName = (name: string): string =>
  [...Buffer.from(name, 'latin1')].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('');
