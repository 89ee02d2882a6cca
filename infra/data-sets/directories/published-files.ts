import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileEntry, FileTree } from '../../sandbox/files.ts';

/** Reads the files of a task directory as its data set publishes them. */
export interface PublishedFiles {
  /** Returns the text of a file. Throws TemperFailure MalformedTask when the file does not exist. */
  text(path: string): string;
  /** Returns the text of a file, or `other` when the file does not exist. */
  textOr<Other>(path: string, other: Other): string | Other;
  /** Returns the files below a prefix, without it in their paths. */
  below(prefix: string): FileTree;
}

export function publishedFiles(tree: FileTree, name: string): PublishedFiles {
  const decode = ({ bytes }: FileEntry): string => new TextDecoder().decode(bytes);
  return {
    text(path) {
      const entry = tree.get(path);
      if (entry === undefined) throw new TemperFailure('MalformedTask', `${name}/${path}: expected a file, got none`);
      return decode(entry);
    },
    textOr(path, other) {
      const entry = tree.get(path);
      return entry === undefined ? other : decode(entry);
    },
    below: (prefix) =>
      new Map(
        [...tree].flatMap(([path, entry]) => (path.startsWith(prefix) ? [[path.slice(prefix.length), entry]] : [])),
      ),
  };
}
