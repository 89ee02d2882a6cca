export interface FileEntry {
  /** Permission bits, e.g. 0o755. */
  readonly mode: number;
  readonly bytes: Uint8Array;
}

/**
 * A tree of regular files that is copied into or out of a sandbox. Its keys are relative POSIX paths without `.` or `..`
 * segments; a link or a device never becomes an entry.
 */
export type FileTree = ReadonlyMap<string, FileEntry>;

/** Returns the files below a prefix, with their paths from there. */
export function subtree(tree: FileTree, prefix: string): FileTree {
  const found = new Map<string, FileEntry>();
  for (const [path, entry] of tree) if (path.startsWith(prefix)) found.set(path.slice(prefix.length), entry);
  return found;
}

/** Returns the files in a directory of a tree, with their paths from there; the whole tree for an empty path. */
export const filesIn = (tree: FileTree, directory: string): FileTree =>
  directory === '' ? tree : subtree(tree, `${directory}/`);
