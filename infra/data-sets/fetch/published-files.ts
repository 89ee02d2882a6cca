import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileEntry, FileTree } from '../../sandbox/files.ts';

/** The files of a task's directory as its data set publishes them. */
export interface PublishedFiles {
  /** Throws TemperFailure MalformedTask when it is not there. */
  text(path: string): string;
  textOr<Other>(path: string, other: Other): string | Other;
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
