import { extname } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import type { DataSet, DataSetFormat, DataSetSource, TaskDraft } from '../data-set.ts';
import { openJson } from './json.ts';
import { openJsonLines } from './jsonl.ts';
import { openParquet } from './parquet.ts';
import { type Row, type RowFile, type RowLocation, rowFailure } from './row.ts';

const rowFiles: Readonly<Record<string, (file: string) => RowFile>> = {
  '.jsonl': openJsonLines,
  '.json': openJson,
  '.parquet': openParquet,
};

/** Turns the rows of a data set into tasks. */
export interface RowReader extends Pick<DataSetFormat, 'isOffline'> {
  /** Returns the id of a row, which need not be valid, or null when it has none. */
  idOf(value: unknown): string | null;
  /** Returns the task's directory in Harbor layout. */
  toFiles(row: Row, source: DataSetSource): FileTree | Promise<FileTree>;
}

/** Creates a format whose tasks are rows of JSON Lines, JSON or Parquet files. */
export function rowFormat(reader: RowReader): DataSetFormat {
  return {
    ...(reader.isOffline && { isOffline: reader.isOffline }),
    wants: (path) => Object.hasOwn(rowFiles, extname(path)),
    open: async (source) => createRowDataSet(source.paths.map(openRowFile), withIds(reader, source.paths), source),
  };
}

function openRowFile(path: string): RowFile {
  const open = rowFiles[extname(path)];
  if (open !== undefined) return open(path);
  const known = Object.keys(rowFiles).join(', ');
  throw new TemperFailure('UnknownTask', `${path}: expected a file of rows (${known}), or a directory of such files`);
}

/** A reader that finds an id for every row. */
interface IdReader extends Pick<RowReader, 'toFiles'> {
  idOf(row: Row): string;
}

function createRowDataSet(files: readonly RowFile[], reader: IdReader, source: DataSetSource): DataSet {
  let index: Promise<RowIndex> | null = null;
  const draftOf = (row: Row): TaskDraft => ({
    id: reader.idOf(row),
    files: async () => reader.toFiles(row, source),
  });
  const indexed = (): Promise<RowIndex> => {
    index ??= buildIndex(files, reader);
    index.catch(() => {
      index = null;
    });
    return index;
  };
  return {
    async *tasks() {
      for (const file of files) for await (const row of file.rows()) yield draftOf(row);
    },
    ids: async () => (await indexed()).ids,
    async find(id) {
      const found = (await indexed()).rows.get(id);
      if (found === undefined) return null;
      const row = await found.file.at(found);
      const draft = draftOf(row);
      if (draft.id === id) return draft;
      index = null;
      throw rowFailure(
        'MalformedTask',
        row,
        `expected task ${id}, got ${draft.id}: the file changed while it was in use`,
      );
    },
  };
}

interface RowIndex {
  readonly rows: ReadonlyMap<string, FoundRow>;
  readonly ids: readonly string[];
}

interface FoundRow extends RowLocation {
  readonly file: RowFile;
}

async function buildIndex(files: readonly RowFile[], reader: IdReader): Promise<RowIndex> {
  const index = new Map<string, FoundRow>();
  for (const file of files) {
    for await (const row of file.rows()) {
      const id = reader.idOf(row);
      const other = index.get(id);
      if (other !== undefined) {
        throw rowFailure('MalformedTask', row, `expected a unique id, got ${id}, which row ${other.number} has too`);
      }
      index.set(id, { file, number: row.number, position: row.position });
    }
  }
  return { rows: index, ids: [...index.keys()] };
}

/**
 * Gives rows without a readable id one that is made of their number, and of their file when there are several. Such a row is
 * listed, where a user sees it, and does not hide other rows.
 */
function withIds({ idOf, toFiles }: RowReader, paths: readonly string[]): IdReader {
  const prefixes = filePrefixes(paths);
  const standIn = ({ file, number }: Row): string => `${prefixes.get(file) ?? ''}row-${number}`;
  return {
    toFiles,
    idOf(row) {
      try {
        return idOf(row.read()) ?? standIn(row);
      } catch (error) {
        if (error instanceof TemperFailure) return standIn(row);
        throw error;
      }
    },
  };
}

/** Prefixes that distinguish the files: their paths below the directory that contains all of them. Empty for one file. */
function filePrefixes(paths: readonly string[]): ReadonlyMap<string, string> {
  const [first = '', ...others] = paths;
  if (others.length === 0) return new Map();
  const directories = first.split('/').slice(0, -1);
  const isShared = (depth: number): boolean =>
    others.every((path) => path.startsWith(`${directories.slice(0, depth).join('/')}/`));
  let depth = directories.length;
  while (depth > 0 && !isShared(depth)) depth -= 1;
  return new Map(paths.map((path) => [path, `${path.split('/').slice(depth).join('_')}-`]));
}
