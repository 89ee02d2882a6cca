import { extname } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import type { DataSet, DataSetFormat, DataSetSource, TaskDraft } from '../data-set.ts';
import { openJson } from './json.ts';
import { openJsonLines } from './jsonl.ts';
import { openParquet } from './parquet.ts';
import { type Row, type RowFile, type RowPlace, rowFailure } from './row.ts';

const rowFiles: Readonly<Record<string, (file: string) => RowFile>> = {
  '.jsonl': openJsonLines,
  '.json': openJson,
  '.parquet': openParquet,
};

/** What makes the rows of a data set tasks. */
export interface RowReader {
  /** The id of a row that may be broken; null when it has none. */
  idOf(value: unknown): string | null;
  /** The task's directory in Harbor layout. */
  toFiles(row: Row, source: DataSetSource): FileTree | Promise<FileTree>;
}

/** A format whose tasks are rows of JSON Lines, JSON or Parquet. */
export function rowFormat(reader: RowReader): DataSetFormat {
  return {
    wants: (path) => Object.hasOwn(rowFiles, extname(path)),
    open: async (source) => createRowDataSet(source.paths.map(openRowFile), named(reader, source.paths), source),
  };
}

function openRowFile(path: string): RowFile {
  const open = rowFiles[extname(path)];
  if (open !== undefined) return open(path);
  const known = Object.keys(rowFiles).join(', ');
  throw new TemperFailure('UnknownTask', `${path}: expected a file of rows (${known}), or a directory of such files`);
}

/** A reader that gives every row an id. */
interface NamedReader extends Pick<RowReader, 'toFiles'> {
  idOf(row: Row): string;
}

function createRowDataSet(files: readonly RowFile[], reader: NamedReader, source: DataSetSource): DataSet {
  let index: Promise<RowIndex> | null = null;
  const draftOf = (row: Row): TaskDraft => ({
    id: reader.idOf(row),
    files: async () => reader.toFiles(row, source),
  });
  const indexed = (): Promise<RowIndex> => {
    index ??= indexOf(files, reader);
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
      throw rowFailure('MalformedTask', row, `expected task ${id}, got ${draft.id}: the file was changed while in use`);
    },
  };
}

interface RowIndex {
  readonly rows: ReadonlyMap<string, FoundRow>;
  readonly ids: readonly string[];
}

interface FoundRow extends RowPlace {
  readonly file: RowFile;
}

async function indexOf(files: readonly RowFile[], reader: NamedReader): Promise<RowIndex> {
  const index = new Map<string, FoundRow>();
  for (const file of files) {
    for await (const row of file.rows()) {
      const id = reader.idOf(row);
      const other = index.get(id);
      if (other !== undefined) {
        throw rowFailure(
          'MalformedTask',
          row,
          `expected an id that no other row has, got ${id} as in row ${other.number}`,
        );
      }
      index.set(id, { file, number: row.number, position: row.position });
    }
  }
  return { rows: index, ids: [...index.keys()] };
}

/**
 * A row without a readable id is listed by its number, and by its file where there are several, so that somebody sees it and
 * no other row is hidden by it.
 */
function named({ idOf, toFiles }: RowReader, paths: readonly string[]): NamedReader {
  const names = namesOf(paths);
  const standIn = ({ file, number }: Row): string => `${names.get(file) ?? ''}row-${number}`;
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

/** What tells files apart: their paths below the directory that all of them are in. */
function namesOf(paths: readonly string[]): ReadonlyMap<string, string> {
  const [first = '', ...others] = paths;
  if (others.length === 0) return new Map();
  const directories = first.split('/').slice(0, -1);
  const isShared = (depth: number): boolean =>
    others.every((path) => path.startsWith(`${directories.slice(0, depth).join('/')}/`));
  let depth = directories.length;
  while (depth > 0 && !isShared(depth)) depth -= 1;
  return new Map(paths.map((path) => [path, `${path.split('/').slice(depth).join('_')}-`]));
}
