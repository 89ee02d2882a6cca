import type { TaskDraft } from './data-set.ts';

/** A task of a source: its id, which is unique in the source, and a function that returns its directory in Harbor layout. */
export type SourceTask = TaskDraft;

/** The default export of a module with tasks of your own. */
export interface TaskSource {
  /** Yields all tasks, each time in the same order. Their files are made when they are asked for. */
  tasks(): Iterable<SourceTask> | AsyncIterable<SourceTask>;
}
