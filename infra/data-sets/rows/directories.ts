import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import { readTaskDirectory } from '../../tasks/harbor/directory.ts';
import type { DataSet, DataSetFormat, DataSetSource, TaskDraft } from '../data-set.ts';

/** What makes a directory of a data set a task. */
export interface DirectoryReader {
  /** The file that every task has, and nothing else. */
  readonly mark: string;
  /** The name of the archive in which such directories are published. */
  readonly archive: RegExp;
  /** The task in Harbor layout, from its files as they were published. `name` is for messages. */
  toFiles(tree: FileTree, name: string, source: DataSetSource): FileTree;
}

/** A format whose tasks are directories: below one directory, or in a `.tar.gz` of it. */
export function directoryFormat(reader: DirectoryReader): DataSetFormat {
  return {
    wants: (path) => reader.archive.test(path),
    async open(source) {
      const roots = await Promise.all(
        source.paths.map(async (path) => ((await isFile(path)) ? source.unpack(path) : path)),
      );
      const found = (await Promise.all(roots.map((root) => taskDirectories(root, reader.mark)))).flat();
      if (found.length > 0) return createDirectoryDataSet(found, reader, source);
      const text = `${source.paths.join(', ')}: expected directories with a ${reader.mark}, got none`;
      throw new TemperFailure('UnknownTask', text);
    },
  };
}

interface TaskDirectory {
  readonly id: string;
  readonly path: string;
}

function createDirectoryDataSet(
  found: readonly TaskDirectory[],
  reader: DirectoryReader,
  source: DataSetSource,
): DataSet {
  const draftOf = ({ id, path }: TaskDirectory): TaskDraft => ({
    id,
    files: async () => reader.toFiles(await readTaskDirectory(path), path, source),
  });
  const byId = new Map<string, TaskDirectory>();
  for (const task of found) {
    const other = byId.get(task.id);
    if (other !== undefined) {
      const text = `${task.path}: expected an id that no other task has, got ${task.id} as in ${other.path}`;
      throw new TemperFailure('MalformedTask', text);
    }
    byId.set(task.id, task);
  }
  const ids = found.map(({ id }) => id);
  return {
    async *tasks() {
      yield* found.map(draftOf);
    },
    ids: async () => ids,
    async find(id) {
      const task = byId.get(id);
      return task === undefined ? null : draftOf(task);
    },
  };
}

/** The task directories of a directory, or of the one that holds them all; or it itself. */
async function taskDirectories(root: string, mark: string): Promise<readonly TaskDirectory[]> {
  const name = root.split('/').at(-1) ?? root;
  if (await isFile(join(root, mark))) return [{ id: name, path: root }];
  const entries = await readdir(root, { withFileTypes: true });
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const tasks: TaskDirectory[] = [];
  for (const id of children.sort()) {
    const path = join(root, id);
    if (await isFile(join(path, mark))) tasks.push({ id, path });
  }
  const [only] = children;
  return tasks.length === 0 && children.length === 1 && only !== undefined
    ? taskDirectories(join(root, only), mark)
    : tasks;
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
