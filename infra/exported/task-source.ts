import type { TaskSource } from '../data-sets/task-source.ts';
import type { FileTree } from '../sandbox/file-tree.ts';

// `temper/task-source`: what a module with tasks of your own is written with.

export type { SourceTask, TaskSource } from '../data-sets/task-source.ts';
export { type HarborTask, readHarborTask } from '../harbor/harbor-task.ts';
export type { FileEntry, FileTree } from '../sandbox/file-tree.ts';

/** Types a source of tasks; returns it unchanged. */
export const defineTasks = (source: TaskSource): TaskSource => source;

/** Makes the files of a task from texts by path. Scripts (`*.sh`) are executable. */
export const filesOf = (texts: Readonly<Record<string, string>>): FileTree =>
  new Map(
    Object.entries(texts).map(([path, text]) => [
      path,
      { mode: path.endsWith('.sh') ? 0o755 : 0o644, bytes: new TextEncoder().encode(text) },
    ]),
  );
