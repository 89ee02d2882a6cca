import type { FileTree } from '../sandbox/files.ts';
import type { CommitFiles } from './fetch/repository.ts';

/** A task of a data set before it is packed. */
export interface TaskDraft {
  readonly id: string;
  /** Its directory in Harbor layout. Throws TemperFailure MalformedTask or UnsupportedTask: a broken row hides no other. */
  files(): Promise<FileTree>;
}

/** Tasks that somebody published together. Any number: nothing but their ids is kept in memory. */
export interface DataSet {
  /** All of them in the order of the data set, one at a time. */
  tasks(): AsyncIterable<TaskDraft>;
  /** The same array as long as the data set is the same. Throws TemperFailure MalformedTask when two tasks have one id. */
  ids(): Promise<readonly string[]>;
  find(id: string): Promise<TaskDraft | null>;
}

/** What an address says beyond format and place. */
export interface DataSetOptions {
  /** The image of tasks that name none. */
  readonly image?: string;
  /** Where repositories are (a directory, or the beginning of git URLs), for tasks whose image brings none. */
  readonly repositories?: string;
  /** Only files of this name or part of a name: `train`, `test`. */
  readonly split?: string;
  /** What a file from a URL must hash to. */
  readonly sha256?: string;
}

/** How one kind of data set is read: a sibling file for each, registered in `index.ts`. */
export interface DataSetFormat {
  /** Is this a file of the data set's tasks? Of a hub or a directory, all of these are read. */
  wants(path: string): boolean;
  open(source: DataSetSource): Promise<DataSet>;
}

/** Where a data set lies once it is on this host. */
export interface DataSetSource {
  /** Files that the format wants, sorted; or one directory, where it wants none. */
  readonly paths: readonly string[];
  readonly options: DataSetOptions;
  /** Files of a repository at a commit. Throws TemperFailure UnknownTask. */
  checkOut(repository: string, commit: string): Promise<CommitFiles>;
  /** The directory that a `.tar.gz` holds, unpacked once per host. */
  unpack(archive: string): Promise<string>;
}
