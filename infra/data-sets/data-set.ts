import type { FileTree } from '../sandbox/file-tree.ts';

/** A published collection of tasks. Its size is not limited: only the ids of its tasks are kept in memory. */
export interface DataSet {
  /** Yields all tasks in the order of the data set, one at a time. */
  tasks(): AsyncIterable<TaskDraft>;
  /** Returns the same array until the data set changes. Throws TemperFailure MalformedTask when two tasks share an id. */
  ids(): Promise<readonly string[]>;
  find(id: string): Promise<TaskDraft | null>;
}

/** A task of a data set before it is packed. */
export interface TaskDraft {
  readonly id: string;
  /**
   * Returns the task's directory in Harbor layout. Throws TemperFailure MalformedTask or UnsupportedTask: an invalid task
   * is reported when it is read, so that it does not hide the others.
   */
  files(): Promise<FileTree>;
}

/** The location at which a data set is published. */
export type DataSetLocation =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'hub'; readonly id: string; readonly revision: string; readonly path: string }
  | { readonly kind: 'git'; readonly url: string; readonly revision: string; readonly path: string };

/** The options that an address adds to the format and the location. */
export interface DataSetOptions {
  /** The image for tasks that do not name one. */
  readonly image?: string;
  /** A directory of mirrors, or a prefix of git URLs, for repositories that no image contains. */
  readonly repositories?: string;
  /** Reads only the files that have this word in their path: `train`, `test`. */
  readonly split?: string;
  /** The SHA-256 digest that a file from a URL must have. */
  readonly sha256?: string;
  /** Makes agents and tests root of their containers. */
  readonly user?: 'root';
  /** Runs the tests of tasks that ask for the agent's own shell in a fresh one. */
  readonly shell?: 'fresh';
  /** The sandbox in which the tests run, for formats that let the address decide. */
  readonly grading?: 'fresh' | 'same' | 'snapshot';
  /** Keeps what the agent started during those tests. */
  readonly processes?: 'keep';
}

/** A way to read data sets. Each format is a file or folder in `formats/`, registered in `formats/index.ts`. */
export interface DataSetFormat {
  /** Whether loading a set runs code that its address names. Only a command of the user may load such a set. Default: false. */
  readonly runsCode?: true;
  /** Whether its tests may ask that the agent's processes run on beside the tests. Default: false. */
  readonly mayKeepProcesses?: true;
  /** Whether none of its tasks needs a network: the tests are judged by their log, and their images hold all that they need. */
  readonly isOffline?: true;
  /** The name of a file that each task directory has, if tasks of this format are directories. */
  readonly markerFile?: string;
  /** Whether a file holds tasks of this format. All such files of a hub repository or of a directory are read. */
  wants(path: string): boolean;
  open(source: DataSetSource): Promise<DataSet>;
}

/** A data set that is present on this host, as its format reads it. */
export interface DataSetSource {
  /** The files that the format wants, sorted; or a single directory when it contains no such files. */
  readonly paths: readonly string[];
  readonly options: DataSetOptions;
  /** Returns the files of a repository at a commit. Throws TemperFailure UnknownTask. */
  checkOut(repository: string, commit: string): Promise<CommitFiles>;
  /** Unpacks a `.tar.gz` once per host and returns the directory. */
  unpack(archive: string): Promise<string>;
}

/** The files of a commit. */
export interface CommitFiles {
  readonly tree: FileTree;
  /** The targets of symbolic links by path. A `FileTree` cannot hold links. */
  readonly links: ReadonlyMap<string, string>;
}
