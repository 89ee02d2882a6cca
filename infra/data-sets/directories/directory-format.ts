import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { readTaskDirectory } from '../../harbor/read-directory.ts';
import type { FileTree } from '../../sandbox/files.ts';
import type { DataSet, DataSetFormat, DataSetSource, TaskDraft } from '../data-set.ts';
import { findMarked } from './marked-directories.ts';

/** Turns the directories of a data set into tasks. */
export interface DirectoryReader {
  /** The name of a file that every task directory contains and no other directory does. */
  readonly markerFile: string;
  /** Matches the path of the archive in which such directories are published. */
  readonly archive: RegExp;
  /** Converts the published files of a task to Harbor layout. `name` is for messages. */
  toFiles(tree: FileTree, name: string, source: DataSetSource): FileTree;
}

/** Creates a format whose tasks are directories, below one directory or in a `.tar.gz` of it. */
export function directoryFormat(reader: DirectoryReader): DataSetFormat {
  return {
    markerFile: reader.markerFile,
    wants: (path) => reader.archive.test(path),
    async open(source) {
      const roots = await Promise.all(
        source.paths.map(async (path) => ((await isFile(path)) ? source.unpack(path) : path)),
      );
      const found = await Promise.all(roots.map((root) => findMarked(root, reader.markerFile)));
      const tasks = found.flatMap(({ tasks: paths }) => paths.map((path) => ({ id: basename(path), path })));
      if (tasks.length > 0) return createDirectoryDataSet(tasks, reader, source);
      const text = `${source.paths.join(', ')}: expected directories that contain ${reader.markerFile}, also in groups, got none`;
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
      const text = `${task.path}: expected a unique id, got ${task.id}, which ${other.path} has too`;
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

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
